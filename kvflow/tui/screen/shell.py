"""What the programs of `kvflow top` have in common: look, a person's keys, files, the end."""

import asyncio
import gc
import signal
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import ClassVar, Final

from textual.app import App
from textual.binding import BindingType
from textual.theme import Theme

from kvflow.errors import ExitCode, KvflowError
from kvflow.tui.options import ScreenOptions
from kvflow.tui.screen import export, keymap, keys

PACES_S: Final = (0.25, 0.5, 1.0, 2.0, 5.0, 10.0)
"""Seconds between two frames that a person can choose from."""
SPEEDS: Final = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
"""Of a recording that is played."""

_THEME = Theme(
    name="kvflow",
    primary="#5aa9e6",  # host: blue
    secondary="#8f9fb3",
    accent="#f2b134",  # on its way to the device: amber
    success="#3fc1a0",  # on the device: teal, which no colour-blind eye takes for amber
    warning="#e0844f",
    error="#ee5d6c",
    foreground="#d5dde5",
    background="#0f1317",
    surface="#151a20",
    panel="#28313b",
    dark=True,
)


class Shell(App[None]):
    """A program on a terminal.

    Args:
        options: how to begin.
        folder: where files are written.
        clock: for their names.

    Attributes:
        bound: every key, as the person has chosen it.

    Raises:
        KvflowError: a key that was chosen makes no sense.
    """

    BINDINGS: ClassVar[list[BindingType]] = [keys.QUIT_NOW]
    CSS_PATH = "top.tcss"
    ENABLE_COMMAND_PALETTE = False  # its key could not be given to anything else: keys has ours
    TITLE = "kvflow top"

    def __init__(self, options: ScreenOptions, folder: Path, clock: Callable[[], datetime]) -> None:
        super().__init__()
        self.use_command_palette = True
        self.options, self.folder, self.clock = options, folder, clock
        self.bound = keymap.chosen(options.config)
        self.register_theme(_THEME)
        self.theme = _THEME.name

    def on_mount(self) -> None:
        """Take over the person's own keys."""
        own = self.options.config.keymap
        self.set_keymap({one.id: one.key for one in self.bound if one.id and one.id in own})

    def on_ready(self) -> None:
        """End in peace when somebody asks for it from outside."""
        self.set_class(self.options.ascii, "-ascii")
        if not self.is_headless:
            gc.freeze()  # what is there by now stays: to look through it again costs a refresh
            terminated = partial(self.exit, return_code=int(ExitCode.TERMINATED))
            asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, terminated)

    def action_picture(self) -> None:
        """Save what is on the screen as SVG."""
        self.write(".svg", self.export_screenshot)

    def write(self, suffix: str, make: Callable[[], str]) -> None:
        """Write a file, and say where it is."""

        def write() -> None:
            path = export.new_path(self.folder, suffix, self.clock())
            export.write(path, make())
            self.notify(str(path), title="saved", markup=False)

        self.done(write)

    def done(self, action: Callable[[], None]) -> bool:
        """Do something that can fail for reasons that a person should read; whether it did not."""
        try:
            action()
        except KvflowError as error:
            self.notify(str(error), severity="error", markup=False)
            return False
        return True


def beside(values: Sequence[float], value: float, by: int) -> float:
    """The value so many places further on a rising ladder, or its end; `value` if that is past."""
    if by > 0:
        further = [one for one in values if one > value]
    else:
        further = [one for one in reversed(values) if one < value]
    return further[min(abs(by), len(further)) - 1] if further else value


def shown(app: Shell) -> None:
    """Run a program until the person quits.

    Raises:
        SystemExit: something of kvflow's failed, which is printed, or SIGTERM came.
    """
    app.run()
    if app.return_code:
        raise SystemExit(app.return_code)
