"""`kvflow` once more, as a process of its own."""

import sys


def again(*words: str) -> list[str]:
    """The command, whatever this one was started by."""
    return [sys.executable, "-c", "from kvflow.cli.app import main; main()", *words]
