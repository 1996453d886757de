"""A server at one moment in lines of text: `kvflow top --once`.

Pure. Drawn with the same functions as the screens.
"""

from collections.abc import Mapping
from itertools import islice

from kvflow.frames import AgentState, Frame
from kvflow.tui import hints
from kvflow.tui.glyphs import ASCII, UNICODE
from kvflow.tui.history import hit_shares
from kvflow.tui.owners import applications, only_client, warmed_words
from kvflow.tui.rows import Column as Sorted
from kvflow.tui.rows import Rows, Sort
from kvflow.tui.screen import figures, tree_cells
from kvflow.tui.screen.agent_cells import steps_cell
from kvflow.tui.screen.chart import Part, bar
from kvflow.tui.screen.columns import Column, header, line_of, place
from kvflow.tui.screen.ink import Ink, Line, Piece, apart, fit, shorten
from kvflow.tui.screen.mode import limited
from kvflow.tui.screen.panels import pools
from kvflow.tui.screen.view import WINDOWS_S, View
from kvflow.tui.source import Status
from kvflow.tui.store import Store
from kvflow.tui.words import NO_AGENT, plural

_POOL_LINES = 6
_HIT_BAR = 30
_AGENTS = (
    Column("agent", "agent", 16, right=False, stretch=True),
    Column("steps", "steps", 5, rank=1),
    Column("now", "now", 4, rank=2),
    Column("bar", "prefix", 20, right=False, stretch=True, rank=3),
    Column("device", "device", 6, rank=4),
    Column("host", "host", 6, rank=5),
    Column("absent", "absent", 6, rank=6),
)


def picture(
    store: Store,
    rows: Rows,
    sort: Sort,
    status: Status,
    label: str,
    *,
    width: int,
    most: int,
    plain: bool,
) -> list[Line]:
    """A server at one moment: what it does, how full it is, who speaks next, and its tree.

    Args:
        store: what is known; must have a frame.
        rows: of the tree, all that could be shown.
        sort: by what they are sorted.
        status: of the source.
        label: of the source.
        width: in cells; no line is longer.
        most: rows of the tree, and agents, that are shown.
        plain: no characters beyond ASCII.
    """
    frame = store.frame
    assert frame is not None
    view = View(store, ASCII if plain else UNICODE, WINDOWS_S[0], plain)
    return [
        *_head(view, frame, status, label, width),
        [],
        *pools.draw(view, width, _POOL_LINES),
        [],
        *_agents(view, frame, width, most),
        [],
        *_tree(view, frame, rows, sort, width, most),
    ]


def _head(view: View, frame: Frame, status: Status, label: str, width: int) -> list[Line]:
    first = apart(
        [Piece("kvflow top  ", Ink.STRONG), Piece(shorten(label, width - 40, view.ellipsis))],
        [Piece("mode "), Piece(frame.mode, Ink.STRONG), Piece(f"  {status.label}", Ink.ACCENT)],
        width,
    )
    trouble = "kvflow has failed in this server: SGLang goes on as in mode off"
    counters = frame.counters
    lines: list[Line] = [
        first,
        *([Piece(words, Ink.WARNING)] for words in limited(frame)[:1]),
        *([[Piece(trouble, Ink.ERROR)]] if frame.degraded else []),
        [
            Piece(f"{frame.running} running, {frame.waiting} waiting, "),
            Piece(f"{plural(frame.runs, 'live run')}; since the start "),
            Piece(f"{plural(counters.tagged_calls, 'tagged call')}, "),
            Piece(f"{counters.untagged_calls:,} untagged"),
        ],
        *_server(frame),
        _hits(view, frame),
        *_copies(frame),
        *([Piece(sentence, Ink.WARNING)] for sentence in hints.told(counters)),
    ]
    return [fit(line, width) for line in lines]


def _server(frame: Frame) -> list[Line]:
    """What is served, and since when; nothing of a server that does not tell."""
    told = [f"model {frame.model}"] if frame.model else []
    told += [f"up {figures.seconds(frame.uptime_s)}"] if frame.uptime_s else []
    return [[Piece(", ".join(told))]] if told else []


def _hits(view: View, frame: Frame) -> Line:
    shares = hit_shares(frame.counters)
    if shares is None:
        return [Piece("no prompt was admitted yet", Ink.MUTED)]
    words = [
        f"{figures.share(share)} {name}"
        for share, name in zip(shares, ("device", "host", "computed"), strict=True)
    ]
    return [Piece("prompts "), *_three(view, shares, 1.0, _HIT_BAR), Piece(f" {', '.join(words)}")]


def _copies(frame: Frame) -> list[Line]:
    counters = frame.counters
    issued = counters.prefetched_tokens
    prefetched = f"prefetched {figures.tokens(issued)} tokens"
    if issued:
        shares = (
            figures.share(tokens / issued)
            for tokens in (
                counters.prefetched_used_tokens,
                counters.prefetched_late_tokens,
                counters.prefetched_wasted_tokens,
            )
        )
        prefetched += ": {} used ({} late), {} wasted".format(*shares)
    evicted = (
        f"evicted {figures.tokens(counters.evicted_device_tokens)} tokens from the device, "
        f"{figures.tokens(counters.evicted_host_tokens)} from the host"
    )
    return [[Piece(prefetched)], [Piece(evicted)]]


def _agents(view: View, frame: Frame, width: int, most: int) -> list[Line]:
    agents, client = applications(frame.agents), only_client(frame.agents)
    warmed = warmed_words(frame.agents)
    unasked = [fit([Piece(warmed, Ink.MUTED)], width)] if warmed else []
    if not agents:
        return [[Piece(NO_AGENT, Ink.MUTED)], *unasked]
    placed = place(_AGENTS, width)
    widths = {column.name: cells for column, cells in placed}
    lines = [header(placed)]
    lines += [line_of(placed, _agent(view, agent, client, widths)) for agent in agents[:most]]
    return [*lines, *_left_out(len(agents) - most, "agent"), *unasked]


def _agent(
    view: View, agent: AgentState, client: str | None, widths: Mapping[str, int]
) -> dict[str, Line]:
    absent = max(0, agent.prefix_tokens - agent.device_tokens - agent.host_tokens)
    parts = (agent.device_tokens, agent.host_tokens, absent)
    full_name = f"{agent.client}/{agent.agent}"
    name = figures.agent(full_name, widths["agent"], view.ellipsis, client)
    return {
        "agent": [Piece(name)],
        "steps": steps_cell(agent),
        "now": [Piece(str(agent.in_flight), Ink.ACCENT)] if agent.in_flight else [],
        "bar": _three(view, parts, agent.prefix_tokens, widths.get("bar", 0)),
        "device": [Piece(figures.tokens(agent.device_tokens))],
        "host": [Piece(figures.tokens(agent.host_tokens))],
        "absent": [Piece(figures.tokens(absent))],
    }


def _tree(view: View, frame: Frame, rows: Rows, sort: Sort, width: int, most: int) -> list[Line]:
    nodes = view.store.tree.nodes.values()
    look = tree_cells.Look(
        glyphs=view.glyphs,
        plain=view.plain,
        bytes_per_token=frame.bytes_per_token,
        client=only_client(frame.agents),
        newest=max((node.last_access for node in nodes), default=0.0),
        largest=max((node.tokens for node in nodes), default=0),
    )
    placed = place(tree_cells.COLUMNS, width)
    widths = {column.name: cells for column, cells in placed}
    arrow = view.glyphs.descending if sort.descending else view.glyphs.ascending
    column = Sorted.ID if sort.column is Sorted.AGENTS else sort.column  # they share one
    lines = [header(placed, column, arrow)]
    for row in islice(rows, most):
        shown = tree_cells.cells(row, look, widths["id"])
        lines.append(line_of(placed, shown))
    known = len(view.store.tree.nodes)
    if known < frame.tree_nodes:
        lines.append([Piece(f"{known:,} of {frame.tree_nodes:,} nodes are known", Ink.MUTED)])
    return [*lines, *_left_out(len(rows) - most, "row")]


def _three(view: View, amounts: tuple[float, float, float], whole: float, width: int) -> Line:
    """A bar of what is on the device, on the host alone, and nowhere."""
    inks = (Ink.DEVICE, Ink.HOST, Ink.MUTED)
    parts = [Part(*part) for part in zip(amounts, view.glyphs.bar[:3], inks, strict=True)]
    return bar(parts, whole, width)


def _left_out(number: int, noun: str) -> list[Line]:
    return [[Piece(f"and {plural(number, f'more {noun}')}", Ink.MUTED)]] if number > 0 else []
