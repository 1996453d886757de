"""Agents: when each speaks next, and where its fixed prefix is."""

from collections.abc import Sequence

from kvflow.frames import AgentState
from kvflow.tui import hints
from kvflow.tui.owners import applications, only_client, warmed
from kvflow.tui.screen import figures
from kvflow.tui.screen.agent_cells import prefix_bar, steps_cell
from kvflow.tui.screen.columns import Column
from kvflow.tui.screen.ink import Ink, Line, Piece
from kvflow.tui.screen.table import Row, Rows, Widths
from kvflow.tui.screen.view import View
from kvflow.tui.words import plural

EMPTY = "no agent has called yet"
COLUMNS = (
    Column("agent", "agent", 14, right=False, stretch=True),
    Column("steps", "steps", 5, rank=1),
    Column("calls", "now", 3, rank=2),
    Column("bar", "prefix", 8, right=False, stretch=True, rank=3),
    Column("tokens", "tokens", 6, rank=4),
    Column("hits", "hit", 4, rank=5),
    Column("runs", "runs", 4, rank=6),
)


def rows(view: View, widths: Widths) -> Sequence[Row]:
    """One row an agent, who speaks first first; then one for all that nobody but a warming had."""
    frame = view.store.frame
    if frame is None:
        return []
    client, silent = only_client(frame.agents), warmed(frame.agents)

    def row(agent: AgentState | None) -> Row:
        if agent is None:
            return Row(_warmed(silent, view, widths))
        return Row(_cells(agent, client, view, widths), agent.end)

    return Rows([*applications(frame.agents), *([None] if silent else [])], row)


def title(view: View) -> str:
    """Whose agents they are, where the rows do not say it."""
    frame = view.store.frame
    client = only_client(frame.agents) if frame else None
    return f"agents of {client}" if client else "agents"


def summary(view: View) -> str:
    """How much of what clients said was of no use, if anything; the workflow has it in words."""
    frame = view.store.frame
    unused = hints.unused(frame.counters) if frame else 0
    return f"{plural(unused, 'wrong hint')}: see the workflow" if unused else ""


def _cells(agent: AgentState, client: str | None, view: View, widths: Widths) -> dict[str, Line]:
    asked = agent.hit_device_tokens + agent.hit_host_tokens + agent.computed_tokens
    hit = (agent.hit_device_tokens + agent.hit_host_tokens) / asked if asked else None
    full_name = f"{agent.client}/{agent.agent}"
    name = figures.agent(full_name, widths["agent"], view.ellipsis, client)
    return {
        "agent": [Piece(name, Ink.PLAIN if agent.steps is not None else Ink.MUTED)],
        "steps": steps_cell(agent),
        "calls": [Piece(str(agent.in_flight), Ink.ACCENT)] if agent.in_flight else [],
        "bar": prefix_bar([agent], view.glyphs, widths.get("bar", 0)),
        "tokens": [Piece(figures.tokens(agent.prefix_tokens))],
        "hits": [Piece(figures.share(hit))],
        "runs": [Piece(str(agent.runs), Ink.PLAIN if agent.runs else Ink.MUTED)],
    }


def _warmed(agents: Sequence[AgentState], view: View, widths: Widths) -> dict[str, Line]:
    return {
        "agent": [Piece(f"{len(agents)} warmed", Ink.MUTED)],
        "steps": steps_cell(None),
        "bar": prefix_bar(agents, view.glyphs, widths.get("bar", 0)),
    }
