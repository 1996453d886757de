"""Each client's agents as they will speak: who runs, who is next, and where each prefix is."""

from collections.abc import Sequence

from kvflow.frames import AgentState, RunState
from kvflow.graph import MAX_STEPS
from kvflow.tui import hints
from kvflow.tui.owners import applications, warmed_words
from kvflow.tui.screen import figures
from kvflow.tui.screen.agent_cells import prefix_bar, steps_cell
from kvflow.tui.screen.columns import Column, header, line_of, place
from kvflow.tui.screen.ink import Ink, Line, Piece, cut
from kvflow.tui.screen.view import View
from kvflow.tui.words import NO_AGENT, NO_FRAME

_MOST_STEPS = 12  # that are drawn one by one
_AGENTS = (
    Column("agent", "agent", 14, right=False, stretch=True),
    Column("now", "speaks", 10, right=False, rank=2),
    Column("steps", "steps", 5, rank=1),
    Column("lane", "to its turn", _MOST_STEPS + 1, right=False, rank=9),
    Column("bar", "prefix", 12, right=False, stretch=True, rank=3),
    Column("device", "device", 6, rank=4),
    Column("host", "host", 6, rank=5),
    Column("absent", "absent", 6, rank=6),
    Column("calls", "calls", 6, rank=8),
    Column("hits", "hit", 5, rank=7),
)


def draw(view: View, width: int, height: int) -> list[Line]:
    """A block for each client: its agents by steps, then its runs. Who speaks first is first."""
    del height
    frame = view.store.frame
    if frame is None:
        return [[Piece(NO_FRAME, Ink.MUTED)]]
    lines: list[Line] = []
    listed = len(frame.run_states)
    if listed < frame.runs:
        lines += [[Piece(f"{listed:,} of {frame.runs:,} live runs are listed", Ink.MUTED)], []]
    known = applications(frame.agents)
    for client in dict.fromkeys(agent.client for agent in known):
        agents = [agent for agent in known if agent.client == client]
        runs = [run for run in frame.run_states if run.client == client]
        live = f"{len(runs)} live runs, " if listed >= frame.runs else ""
        lines += [*_client(view, client, live, agents, runs, width), []]
    if not known:
        lines.append([Piece(NO_AGENT, Ink.MUTED)])
    lines.append([Piece(warmed_words(frame.agents), Ink.MUTED)])
    wrong = hints.told(frame.counters)
    return [*lines, *([Piece(sentence, Ink.WARNING)] for sentence in wrong)]


def _client(
    view: View,
    client: str,
    live: str,
    agents: Sequence[AgentState],
    runs: Sequence[RunState],
    width: int,
) -> list[Line]:
    in_flight = sum(agent.in_flight for agent in agents)
    title: Line = [
        Piece(client, Ink.STRONG),
        Piece(f"  {live}{in_flight} calls in flight", Ink.MUTED),
    ]
    placed = place(_AGENTS, width)
    widths = {column.name: cells for column, cells in placed}
    rows = [
        line_of(placed, _agent(view, agent, widths.get("bar", 0), widths["agent"]))
        for agent in agents
    ]
    lines = [title, header(placed), *rows]
    if runs:
        lines += [[], [Piece("runs", Ink.ACCENT)]]
        lines += [_run(run, width, view.ellipsis) for run in runs]
    return lines


def _agent(view: View, agent: AgentState, bar_width: int, name_width: int) -> dict[str, Line]:
    absent = max(agent.prefix_tokens - agent.device_tokens - agent.host_tokens, 0)
    asked = agent.hit_device_tokens + agent.hit_host_tokens + agent.computed_tokens
    hit = (agent.hit_device_tokens + agent.hit_host_tokens) / asked if asked else None
    known = bool(agent.prefix_tokens)
    return {
        "agent": [Piece(figures.agent(agent.agent, name_width, view.ellipsis))],
        "now": _speaks(view, agent),
        "steps": steps_cell(agent),
        "lane": _lane(view, agent.steps),
        "bar": prefix_bar([agent], view.glyphs, bar_width),
        "device": [Piece(figures.tokens(agent.device_tokens), Ink.DEVICE)] if known else [],
        "host": [Piece(figures.tokens(agent.host_tokens), Ink.HOST)] if known else [],
        "absent": [Piece(figures.tokens(absent), Ink.MUTED)] if known else [],
        "calls": [Piece(f"{agent.calls:,}", Ink.MUTED)],
        "hits": [Piece(figures.share(hit))],
    }


def _speaks(view: View, agent: AgentState) -> Line:
    if agent.in_flight:
        mark = ">" if view.plain else "▶"
        return [Piece(f"{mark} now x{agent.in_flight}", Ink.ACCENT)]
    if agent.steps is None:
        return [Piece("no run", Ink.MUTED)]
    return [Piece("next", Ink.STRONG)] if agent.steps <= 1 else []


def _lane(view: View, steps: int | None) -> Line:
    """One block a step that lies between now and the agent's next call."""
    if not steps or steps >= MAX_STEPS:
        return []
    more = "+" if steps > _MOST_STEPS else ""
    blocks = view.glyphs.bar[1] * min(steps, _MOST_STEPS)
    return [Piece(blocks + more, Ink.ACCENT if steps <= 1 else Ink.MUTED)]


def _run(run: RunState, width: int, ellipsis: str) -> Line:
    line = [Piece(f"{run.run:<14} ", Ink.MUTED)]
    if run.expected:
        line.append(Piece("expected  ", Ink.MUTED))
    if run.idle_ticks:
        line.append(Piece(f"idle {run.idle_ticks} s  ", Ink.WARNING))
    for agent, calls in run.in_flight.items():
        line.append(Piece(f"{agent}{f' x{calls}' if calls > 1 else ''}  ", Ink.ACCENT))
    waiting = [(steps, agent) for agent, steps in run.steps.items() if agent not in run.in_flight]
    for steps, agent in sorted(waiting):
        line += [
            Piece(f"{agent} "),
            Piece(f"{figures.steps(steps)}  ", Ink.STRONG if steps <= 1 else Ink.MUTED),
        ]
    return cut(line, width, ellipsis)
