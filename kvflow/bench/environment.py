"""What a bench ran on: recorded, so that a figure can be judged later. No path, no host name."""

import os
import platform
import subprocess
from importlib import metadata
from pathlib import Path
from shutil import which

import psutil

from kvflow import __version__

Environment = dict[str, str | int | float | None]


def environment() -> Environment:
    """Versions and hardware."""
    return {
        "kvflow": __version__,
        "sglang": _version("sglang"),
        "torch": _version("torch"),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()}",
        "cpu": _cpu(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gib": round(psutil.virtual_memory().total / 2**30),
        "gpus": _gpus(),
    }


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _gpus() -> str | None:
    """Name, memory and driver of each GPU, as its own tool tells them; None without one."""
    tool = which("nvidia-smi")
    if tool is None:
        return None
    query = ["--query-gpu=name,memory.total,driver_version", "--format=csv,noheader"]
    try:
        done = subprocess.run([tool, *query], capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return "; ".join(done.stdout.split("\n")).strip("; ") or None if not done.returncode else None
