"""The program: takes frames from a source, keeps the store, and shows both on the main screen."""

from collections.abc import Callable, Iterable
from datetime import datetime
from functools import partial
from pathlib import Path

from textual.actions import parse
from textual.app import SystemCommand
from textual.binding import Binding
from textual.screen import Screen

from kvflow.telemetry.sampler import Sampler
from kvflow.tui.glyphs import ASCII, UNICODE, Glyphs
from kvflow.tui.options import ScreenOptions
from kvflow.tui.record import Recorder
from kvflow.tui.screen import export, keys
from kvflow.tui.screen.banner import Situation
from kvflow.tui.screen.details import Details
from kvflow.tui.screen.main import MainScreen
from kvflow.tui.screen.shell import PACES_S, SPEEDS, Shell, beside, shown
from kvflow.tui.screen.view import WINDOWS_S, View
from kvflow.tui.source import Replayable, Source
from kvflow.tui.store import Store


class TopApp(Shell):
    """`kvflow top` on a terminal. Nothing that a server does ends it.

    Args:
        source: of frames.
        telemetry: of this machine, if it is looked at.
        options: how to begin.
        folder: where recordings, pictures and tables are written.
        clock: for the names of these files.

    Raises:
        KvflowError: the file that was asked for cannot be recorded to, or a key makes no sense.
    """

    def __init__(
        self,
        source: Source,
        *,
        telemetry: Sampler | None,
        options: ScreenOptions,
        folder: Path,
        clock: Callable[[], datetime] = datetime.now,
    ) -> None:
        super().__init__(options, folder, clock)
        self._source, self._telemetry = source, telemetry
        self._store = Store()
        self._frozen: Store | None = None
        self._recording = options.record
        self._recorder = Recorder(options.record, source.label) if options.record else None

    def get_default_screen(self) -> Screen[None]:
        """The main screen."""
        self._main = MainScreen(
            self.options, self._glyphs, self.bound, self._view(self._store), self._situation()
        )
        return self._main

    def on_ready(self) -> None:
        """Begin to take frames, now that all is there to show them."""
        self.run_worker(self._feed(), name="frames")
        self.set_interval(1.0, self._tick)

    def finish_recording(self) -> None:
        """Finish what was recorded, when the terminal is the person's again.

        Raises:
            KvflowError: the end of it cannot be written.
        """
        if self._recorder is not None:
            self._recorder.close()

    async def _feed(self) -> None:
        async for frame in self._source.frames():
            self._store.apply(frame)
            if self._recorder is not None and not self.done(
                partial(self._recorder.add, self._store)
            ):
                self._recorder = None
            self._show()

    # What is shown

    def _show(self) -> None:
        shown = self._view(self._frozen or self._store)
        self._main.show(self._view(self._store), shown, self._situation())
        if isinstance(self.screen, Details):
            self.screen.show(shown)

    def _tick(self) -> None:
        """Time goes by without a frame too: the source ages, the machine works."""
        self._main.pass_time(self._view(self._store), self._situation())

    @property
    def _glyphs(self) -> Glyphs:
        return ASCII if self.options.ascii else UNICODE

    def _view(self, store: Store) -> View:
        sample = self._telemetry.latest if self._telemetry is not None else None
        return View(store, self._glyphs, WINDOWS_S[0], self.options.ascii, sample)

    def _situation(self) -> Situation:
        return Situation(
            status=self._source.status,
            label=self._source.label,
            interval_s=self._source.interval_s,
            paused=self._frozen is not None,
            recording=self._recording.name if self._recorder and self._recording else "",
        )

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """Every key of the main screen, by what it does."""
        if not isinstance(screen, MainScreen):
            yield from super().get_system_commands(screen)
            return
        on_main = {binding.id for binding in keys.MAIN}
        for binding in self.bound:
            if binding.id not in on_main or not self._can_do(binding):
                continue
            described = f"key {' or '.join(keys.names(binding))}"
            run = partial(self.run_action, binding.action, default_namespace=screen)
            title = binding.description.capitalize()
            yield SystemCommand(title, described, run)

    def _can_do(self, binding: Binding) -> bool:
        _, action, parameters = parse(binding.action)
        return bool(self.check_action(action, parameters))

    def action_preset(self) -> None:
        """Choose among the presets of the person's file."""
        config = self.options.config
        if not config.presets:
            self.notify(f"presets are kept in {config.path}", title="no presets", markup=False)
            return
        offered = [(name, partial(self._take, name), None) for name in config.presets]
        self.search_commands(offered, placeholder="Preset")

    def _take(self, name: str) -> None:
        preset = self.options.config.presets[name]
        if preset.interval_s is not None:
            self._source.interval_s = preset.interval_s
        self._main.take(preset)

    # The source

    def action_pause(self) -> None:
        """Hold tree and tables while banner and charts go on; hold a recording as a whole."""
        if isinstance(self._source, Replayable):
            self._source.paused = not self._source.paused
        else:
            self._frozen = None if self._frozen is not None else self._store.frozen()
        self._show()

    def action_pace(self, slower: int) -> None:
        """More or fewer frames in a time, one degree."""
        if isinstance(self._source, Replayable):
            self._source.speed = beside(SPEEDS, self._source.speed, -slower)
        else:
            self._source.interval_s = beside(PACES_S, self._source.interval_s, slower)
        self._tick()

    def action_ask_now(self) -> None:
        """Do not wait for the next frame."""
        self._source.refresh()

    def action_step(self, frames: int) -> None:
        """Go on or back in a recording by so many frames."""
        if isinstance(self._source, Replayable):
            self._source.step(frames)
            self._tick()

    def action_jump(self, seconds: int) -> None:
        """Go on or back in a recording by so many seconds."""
        if isinstance(self._source, Replayable):
            self._source.seek(self._source.position_s + seconds)
            self._tick()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Only a recording can be stepped through."""
        del parameters
        if action in ("step", "jump") and not isinstance(self._source, Replayable):
            return None
        return True

    # Files

    def action_record(self) -> None:
        """Write frames to a new file from now on, or stop."""
        if self._recorder is not None:
            if self.done(self._recorder.close):
                nothing = "nothing: no frame came"
                told = nothing if self._recorder.is_empty else f"{self._recording}"
                self.notify(told, title="recorded", markup=False)
            self._recorder = None
        else:
            self.done(self._begin_recording)
        self._tick()

    def _begin_recording(self) -> None:
        path = export.new_path(self.folder, ".kvtrace", self.clock())
        recorder = Recorder(path, self._source.label)
        recorder.add(self._store)
        self._recording, self._recorder = path, recorder

    def action_export(self) -> None:
        """Write the rows of the tree to a CSV file."""
        self.write(".csv", lambda: export.as_csv(self._main.rows))


def run(source: Source, *, telemetry: Sampler | None, options: ScreenOptions) -> None:
    """Show a source until the person quits.

    Args:
        source: of frames.
        telemetry: of this machine, already at work; None if it is not to be shown.
        options: how to begin.

    Raises:
        KvflowError: the file that was asked for cannot be recorded to, be it at the end, or a key
            makes no sense.
        SystemExit: something of kvflow's failed, which is printed, or SIGTERM came.
    """
    app = TopApp(source, telemetry=telemetry, options=options, folder=export.folder())
    try:
        shown(app)
    finally:
        app.finish_recording()
