"""Suppliers of examples: commits, files, HumanEval, scenarios and questions."""
