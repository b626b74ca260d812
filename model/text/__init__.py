"""Languages, syntax trees and lines of texts."""
