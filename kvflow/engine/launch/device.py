"""Which device SGLang is to run on, without importing torch."""

import subprocess
from collections.abc import Mapping
from pathlib import Path
from shutil import which
from typing import Literal

Device = Literal["cpu", "cuda"]

_DRIVER = Path("/proc/driver/nvidia/gpus")


def choose(wanted: Literal["auto", "cpu", "cuda"], environ: Mapping[str, str]) -> Device:
    """The device to serve on: the one asked for, or `cuda` where an NVIDIA GPU can be seen."""
    if wanted != "auto":
        return wanted
    return "cuda" if gpu_visible(environ) else "cpu"


def gpu_visible(environ: Mapping[str, str]) -> bool:
    """Whether a process with this environment can see an NVIDIA GPU."""
    if environ.get("CUDA_VISIBLE_DEVICES", "all").strip() in ("", "-1"):
        return False
    if _DRIVER.is_dir() and any(_DRIVER.iterdir()):
        return True
    return _listed_by_nvidia_smi()


def _listed_by_nvidia_smi() -> bool:
    # Where the driver lives outside this kernel (WSL), only its tool knows.
    tool = which("nvidia-smi")
    if tool is None:
        return False
    try:
        answer = subprocess.run([tool, "-L"], capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return answer.returncode == 0 and "GPU 0" in answer.stdout
