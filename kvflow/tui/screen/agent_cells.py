"""An agent's cells that several pictures share; without Textual, since scripts draw them too."""

from collections.abc import Sequence

from kvflow.frames import AgentState
from kvflow.tui.glyphs import Glyphs
from kvflow.tui.screen import figures
from kvflow.tui.screen.chart import Part, bar
from kvflow.tui.screen.ink import Ink, Line, Piece


def prefix_bar(agents: Sequence[AgentState], glyphs: Glyphs, width: int) -> Line:
    """How much of their prefixes is on the device, only on the host, and nowhere."""
    prefix = sum(agent.prefix_tokens for agent in agents)
    if not prefix:
        return [Piece("unknown", Ink.MUTED)]
    full, half, faint = glyphs.bar[:3]
    device = sum(agent.device_tokens for agent in agents)
    host = sum(agent.host_tokens for agent in agents)
    parts = [
        Part(device, full, Ink.DEVICE),
        Part(host, half, Ink.HOST),
        Part(max(prefix - device - host, 0), faint, Ink.MUTED),
    ]
    return bar(parts, prefix, width)


def steps_cell(agent: AgentState | None) -> Line:
    """Steps as a number; the nearer, the stronger. With ? where they seldom come true."""
    if agent is None or agent.steps is None:
        return [Piece("-", Ink.MUTED)]
    if agent.doubted:
        return [Piece(figures.steps(agent.steps), Ink.MUTED), Piece("?", Ink.WARNING)]
    return [Piece(figures.steps(agent.steps), Ink.STRONG if agent.steps <= 1 else Ink.PLAIN)]
