"""Starting SGLang for a recipe, watching it, and ending it without leaving a process behind."""

from kvflow.engine.launch.checks import before_start
from kvflow.engine.launch.command import Launch, build
from kvflow.engine.launch.device import Device, choose
from kvflow.engine.launch.interrupts import Interrupts
from kvflow.engine.launch.options import Options
from kvflow.engine.launch.phases import Phase
from kvflow.engine.launch.server import Progress, Server

__all__ = [
    "Options",
    "build",
    "Launch",
    "before_start",
    "Server",
    "Progress",
    "Phase",
    "Interrupts",
    "Device",
    "choose",
]
