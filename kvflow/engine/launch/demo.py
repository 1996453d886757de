"""Writing the built-in model in a process of its own.

It takes torch, which would stay in the memory of `kvflow serve` for as long as that runs.
"""

import subprocess
import sys

from kvflow.engine.cpu import demo_model
from kvflow.engine.launch.command import Launch
from kvflow.errors import KvflowError


def missing(launch: Launch) -> bool:
    """Whether the built-in model is to be served and has not been written yet."""
    folder = demo_model.folder()
    return launch.model == str(folder) and not folder.is_dir()


def write() -> None:
    """Write the built-in model.

    Raises:
        KvflowError: it could not be written.
    """
    script = f"from {demo_model.__name__} import ensure; ensure()"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
        where = demo_model.folder().parent
        raise KvflowError(
            f"cannot write the built-in model to {where}",
            last,
            "make room there, or serve another one: --model PATH",
        )
