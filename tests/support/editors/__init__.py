"""Editors for tests: scripted sessions, language servers, real Neovim and VS Code."""
