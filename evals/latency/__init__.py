"""Benchmarks: time and memory of typing, of the engine and of a start."""

import sys

#: Runs ``redraft`` in another process, with the Python that measures.
REDRAFT = [sys.executable, "-c", "from redraft.server.commands.main import main; main()"]
