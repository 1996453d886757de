"""Agents: when each speaks next, and where its fixed prefix is."""

from kvflow.frames import AgentState
from kvflow.tui.glyphs import Glyphs
from kvflow.tui.screen import figures
from kvflow.tui.screen.chart import Part, bar
from kvflow.tui.screen.columns import Column
from kvflow.tui.screen.ink import Ink, Line, Piece
from kvflow.tui.screen.table import Row, Widths
from kvflow.tui.screen.view import View

EMPTY = "no agent has called yet"
COLUMNS = (
    Column("agent", "agent", 14, right=False, stretch=True),
    Column("steps", "steps", 5),
    Column("calls", "now", 3),
    Column("bar", "prefix", 8, right=False, stretch=True, rank=1),
    Column("tokens", "tokens", 6, rank=2),
    Column("hits", "hit", 4, rank=3),
    Column("runs", "runs", 4, rank=4),
)


def rows(view: View, widths: Widths) -> list[Row]:
    """One row an agent: who speaks first comes first."""
    frame = view.store.frame
    agents = sorted(frame.agents, key=order) if frame else []
    return [Row(_cells(agent, view, widths), agent.end) for agent in agents]


def order(agent: AgentState) -> tuple[float, str, str]:
    """Sorts by steps; those without a live run come last."""
    steps = float("inf") if agent.steps is None else agent.steps
    return steps, agent.client, agent.agent


def prefix_bar(agent: AgentState, glyphs: Glyphs, width: int) -> Line:
    """How much of the prefix is on the device, only on the host, and nowhere."""
    if not agent.prefix_tokens:
        return [Piece("unknown", Ink.MUTED)]
    full, half, faint = glyphs.bar[:3]
    absent = max(agent.prefix_tokens - agent.device_tokens - agent.host_tokens, 0)
    parts = [
        Part(agent.device_tokens, full, Ink.DEVICE),
        Part(agent.host_tokens, half, Ink.HOST),
        Part(absent, faint, Ink.MUTED),
    ]
    return bar(parts, agent.prefix_tokens, width)


def steps_cell(steps: int | None) -> Line:
    """Steps as a number; the nearer, the stronger."""
    if steps is None:
        return [Piece("-", Ink.MUTED)]
    return [Piece(str(steps), Ink.STRONG if steps <= 1 else Ink.PLAIN)]


def _cells(agent: AgentState, view: View, widths: Widths) -> dict[str, Line]:
    asked = agent.hit_device_tokens + agent.hit_host_tokens + agent.computed_tokens
    hit = (agent.hit_device_tokens + agent.hit_host_tokens) / asked if asked else None
    name = figures.agent(f"{agent.client}/{agent.agent}", widths["agent"], view.ellipsis)
    return {
        "agent": [Piece(name, Ink.PLAIN if agent.steps is not None else Ink.MUTED)],
        "steps": steps_cell(agent.steps),
        "calls": [Piece(str(agent.in_flight), Ink.ACCENT)] if agent.in_flight else [],
        "bar": prefix_bar(agent, view.glyphs, widths.get("bar", 0)),
        "tokens": [Piece(figures.tokens(agent.prefix_tokens))],
        "hits": [Piece(figures.share(hit))],
        "runs": [Piece(str(agent.runs), Ink.PLAIN if agent.runs else Ink.MUTED)],
    }
