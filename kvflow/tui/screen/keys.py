"""The keys of the main screen. Each has an id, so that a person can give it another key."""

from collections.abc import Iterable

from textual.binding import Binding
from textual.keys import format_key

QUIT_NOW = Binding(
    "ctrl+c,ctrl+q",
    "app.quit",
    "quit, wherever you are",
    show=False,
    priority=True,
    id="app.quit_now",
)
"""The program's own besides: a sheet above the main screen would keep it from being heard."""

MAIN = [
    Binding("slash", "filter", "filter", id="view.filter"),
    Binding("escape", "back", "back, or clear the filter", show=False, id="view.back"),
    Binding(
        "less_than_sign", "sort(-1)", "sort by the column before", show=False, id="view.sort_left"
    ),
    Binding("greater_than_sign", "sort(1)", "sort", id="view.sort_right"),
    Binding("I", "invert", "turn the order round", show=False, id="view.invert"),
    Binding("t", "flat", "tree or list", id="view.flat"),
    Binding("F", "follow", "follow the selection", show=False, id="view.follow"),
    Binding("w", "workflow", "workflow", id="view.workflow"),
    Binding("1", "panel('charts')", "charts", show=False, id="view.charts"),
    Binding("2", "panel('agents')", "agents", show=False, id="view.agents"),
    Binding("3", "panel('queue')", "prefetches and waiting calls", show=False, id="view.queue"),
    Binding("4", "panel('evictions')", "evictions", show=False, id="view.evictions"),
    Binding("5", "panel('machine')", "machine", show=False, id="view.machine"),
    Binding("z", "zoom", "maximise the panel, or restore it", show=False, id="view.zoom"),
    Binding("W", "window", "charts over 1, 5 or 15 minutes", show=False, id="view.window"),
    Binding("y", "copy", "copy the node's id", show=False, id="view.copy"),
    Binding("P", "app.preset", "take a preset", show=False, id="view.preset"),
    Binding("p,Z", "app.pause", "pause", id="source.pause"),
    Binding("plus", "app.pace(-1)", "faster", show=False, id="source.faster"),
    Binding("minus", "app.pace(1)", "slower", show=False, id="source.slower"),
    Binding("ctrl+r,f5", "app.ask_now", "ask the server now", show=False, id="source.refresh"),
    Binding("R", "app.record", "record, or stop recording", show=False, id="source.record"),
    Binding("left_square_bracket", "app.step(-1)", "a frame back", show=False, id="replay.back"),
    Binding("right_square_bracket", "app.step(1)", "a frame on", show=False, id="replay.on"),
    Binding("left_curly_bracket", "app.jump(-10)", "10 s back", show=False, id="replay.jump_back"),
    Binding("right_curly_bracket", "app.jump(10)", "10 s on", show=False, id="replay.jump_on"),
    Binding("ctrl+s", "app.picture", "save the screen as SVG", show=False, id="app.picture"),
    Binding("E", "app.export", "write the rows to a CSV file", show=False, id="app.export"),
    Binding("T", "app.change_theme", "theme", show=False, id="app.theme"),
    Binding("colon,ctrl+p", "app.command_palette", "all commands", show=False, id="app.palette"),
    Binding("question_mark,h,f1", "help", "help", id="app.help"),
    Binding("q", "app.quit", "quit", id="app.quit"),
    QUIT_NOW,
]

GROUPS = {
    "view": "What is shown",
    "list": "In the tree and in tables",
    "tree": "In the tree",
    "source": "Server",
    "replay": "Recording that is played",
    "app": "Program",
}
"""By the first part of a binding's id, in the order in which help shows them."""


def expanded(binding: Binding) -> list[str]:
    """The keys of a binding as Textual names them: question_mark for ?."""
    return [one.key for one in Binding.make_bindings([binding])]


def names(binding: Binding) -> list[str]:
    """The keys of a binding: the character that is typed, or the word on the key."""
    keys = expanded(binding)
    return [shown if (shown := format_key(key)).isascii() else key for key in keys]


def table(bindings: Iterable[Binding]) -> str:
    """The keys as Markdown, one table a group."""
    found = list(bindings)
    blocks = []
    for group, title in GROUPS.items():
        lines = [f"| {title} | key | id |", "|---|---|---|"]
        for binding in found:
            if (binding.id or "").partition(".")[0] == group:
                keys = " ".join(f"`{name}`" for name in names(binding)).replace("|", "\\|")
                lines.append(f"| {binding.description} | {keys} | `{binding.id}` |")
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks)
