"""Where the state of this very machine lies.

A home can be shared by machines and containers, and a port or a process number of one of them means
nothing to another.
"""

import os
import platform
from pathlib import Path

from platformdirs import user_state_path


def state_folder() -> Path:
    """The folder of this machine, or of this container, in the user's state folder."""
    try:
        processes = os.stat("/proc/self/ns/pid").st_ino  # whose numbers are told apart here
    except OSError:
        processes = 0
    return user_state_path("kvflow") / f"{platform.node()}-{processes}"
