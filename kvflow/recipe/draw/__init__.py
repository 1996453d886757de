"""Drawing an Agent Step Graph, for a terminal and for Mermaid. Pure: text out, nothing printed."""

from collections.abc import Mapping
from textwrap import wrap

from kvflow.graph import Graph
from kvflow.recipe.draw.canvas import TangledError, to_ascii
from kvflow.recipe.draw.flowchart import mermaid
from kvflow.recipe.draw.picture import paint
from kvflow.recipe.draw.words import listing, notes

__all__ = ["draw", "mermaid"]


def draw(
    graph: Graph,
    steps: Mapping[str, int] | None = None,
    *,
    width: int = 80,
    ascii_only: bool = False,
) -> str:
    """The graph for a terminal: a picture, and below it in words what a picture cannot say.

    Args:
        graph: every agent of it can be reached.
        steps: by agent, written beside the names.
        width: columns there are. What does not fit is listed instead, one agent a line.
        ascii_only: for terminals without box-drawing characters.
    """
    try:
        rows = paint(graph, steps)
    except TangledError:
        rows = []
    if not rows or max(map(len, rows)) > width:
        rows = listing(graph, steps)
    noted: list[str] = []
    written = to_ascii if ascii_only else str
    for topic, note in notes(graph):
        noted += wrap(written(f"{topic:6}{note}"), width, subsequent_indent=" " * 6)
    return "\n".join([*map(written, rows), "", *noted]) + "\n"
