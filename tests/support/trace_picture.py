"""Reads a drawn graph back: follows its lines as a person would who does not know the graph."""

import re

N, E, S, W = range(4)
_STEP = {N: (0, -1), E: (1, 0), S: (0, 1), W: (-1, 0)}
_ENDS = {
    "│": {N, S}, "─": {E, W}, "└": {N, E}, "┘": {N, W}, "┌": {S, E}, "┐": {S, W},
    "├": {N, S, E}, "┤": {N, S, W}, "┬": {E, S, W}, "┴": {N, E, W}, "┼": {N, E, S, W},
}  # fmt: skip
_BOX = re.compile(r"\[ *([^\]: ]+)[^\]]*\]|\((start)\)")


class Traced:
    """A picture.

    Args:
        rows: its text.
        rails: how many of its last upright lines are rails: they alone lead up.

    Attributes:
        boxes: by agent, its row and the columns of its first and last character.
    """

    def __init__(self, rows: list[str], rails: int) -> None:
        # A share within a line is part of the line.
        self._rows = [re.sub(r"─ [\d.]+ ", lambda m: "─" * len(m[0]), row) for row in rows]
        self.boxes = {
            box[1] or box[2]: (y, box.start(), box.end() - 1)
            for y, row in enumerate(self._rows)
            for box in _BOX.finditer(row)
        }
        columns = {
            x for row in self._rows for x, character in enumerate(row) if character in "│┐┘┤"
        }
        self._rails = sorted(columns)[len(columns) - rails :] if rails else []

    def targets(self, name: str) -> set[str]:
        """The agents that the lines out of an agent lead to."""
        y, left, right = self.boxes[name]
        heads: set[tuple[int, int]] = set()
        seen: set[tuple[int, int, int]] = set()
        fresh = [(x, y + 1, S) for x in range(left, right + 1)] + [(right + 1, y, E)]
        while fresh:
            x, y, heading = at = fresh.pop()
            if at in seen:
                continue
            seen.add(at)
            if (self._at(x, y), heading) in {("▼", S), ("◄", W)}:
                heads.add((x, y))
            fresh += [
                (x + _STEP[way][0], y + _STEP[way][1], way) for way in self._ways(x, y, heading)
            ]
        return {self._pointed_at(*head) for head in heads}

    def _ways(self, x: int, y: int, heading: int) -> set[int]:
        """How a line goes on that enters a cell: never back, and up only beside the agents."""
        came_from = (heading + 2) % 4
        character = self._at(x, y)
        if character == "│" and heading in {E, W}:
            return {heading}  # it passes behind an upright line
        ends = _ENDS.get(character, set())
        if came_from not in ends:
            return set()
        return {way for way in ends - {came_from} if way != N or x in self._rails}

    def _pointed_at(self, x: int, y: int) -> str:
        below, beside = (x, y + 1), (x - 1, y)
        at, row = below if self._at(x, y) == "▼" else beside
        return next(
            name
            for name, (y, left, right) in self.boxes.items()
            if y == row and left <= at <= right
        )

    def _at(self, x: int, y: int) -> str:
        row = self._rows[y] if 0 <= y < len(self._rows) else ""
        return row[x] if 0 <= x < len(row) else " "
