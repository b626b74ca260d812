"""From a package index or a folder to files that are ready to run."""
