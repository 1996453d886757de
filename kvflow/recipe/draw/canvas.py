"""A grid of text on which lines meet: strokes go in, box-drawing characters come out."""

from collections.abc import Iterator

N, E, S, W = 1, 2, 4, 8

_UNICODE = " │─└││┌├─┘─┴┐┤┬┼"  # by the sum of the directions that a line leaves a cell in
_ASCII = {"│": "|", "─": "-", "▼": "v", "◄": "<", "→": "->"}


class TangledError(Exception):
    """Two lines would run along each other, so that nobody could tell them apart."""


class Canvas:
    """Lines and text; x and y are columns and rows from 0.

    Lines of one net join where they touch. Lines of different nets may cross: the upright one is
    drawn through, so that a crossing never looks like a junction.
    """

    def __init__(self) -> None:
        self._lines: dict[tuple[int, int], dict[object, int]] = {}
        self._text: dict[tuple[int, int], str] = {}

    def across(self, net: object, y: int, left: int, right: int) -> None:
        """A level line, ends included.

        Raises:
            TangledError: a line of another net runs along it.
        """
        for x in range(left, right + 1):
            self._stroke(net, x, y, (W if x > left else 0) | (E if x < right else 0))

    def down(self, net: object, x: int, top: int, bottom: int) -> None:
        """An upright line, ends included.

        Raises:
            TangledError: a line of another net runs along it.
        """
        for y in range(top, bottom + 1):
            self._stroke(net, x, y, (N if y > top else 0) | (S if y < bottom else 0))

    def write(self, x: int, y: int, text: str) -> None:
        """Text from (x, y) to the right, over whatever is there."""
        for at, character in enumerate(text, start=x):
            self._text[at, y] = character

    def rows(self) -> Iterator[str]:
        """The picture, without blanks at the ends of rows."""
        cells = self._lines.keys() | self._text.keys()
        for y in range(max((y for _, y in cells), default=-1) + 1):
            width = max((x for x, row in cells if row == y), default=-1) + 1
            yield "".join(self._character(x, y) for x in range(width)).rstrip()

    def _stroke(self, net: object, x: int, y: int, directions: int) -> None:
        nets = self._lines.setdefault((x, y), {})
        for other, held in nets.items():
            if other != net and held & directions:
                raise TangledError
        nets[net] = nets.get(net, 0) | directions

    def _character(self, x: int, y: int) -> str:
        if (x, y) in self._text:
            return self._text[x, y]
        held = sorted(self._lines.get((x, y), {}).values(), key=lambda way: way & (N | S))
        return _UNICODE[held[-1]] if held else " "


def to_ascii(text: str) -> str:
    """The same picture in characters that any terminal has."""
    for drawn, plain in _ASCII.items():
        text = text.replace(drawn, plain)
    return "".join("+" if character in _UNICODE[1:] else character for character in text)
