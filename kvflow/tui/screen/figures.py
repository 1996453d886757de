"""Numbers in few characters: an operator reads magnitudes, not digits."""

from rich.cells import cell_len

from kvflow.graph import MAX_STEPS
from kvflow.tui.screen.ink import shorten

_THOUSANDS = ("", "k", "M", "G", "T")
_BINARY = ("B", "Ki", "Mi", "Gi", "Ti")


def tokens(count: float) -> str:
    """Tokens in at most 4 characters: 812, 1.2k, 15k, 1.3M."""
    return _scaled(count, 1000, _THOUSANDS)


def size(count: float) -> str:
    """Bytes in at most 6 characters, in powers of 1024: 812B, 1.5Mi, 1023Ki."""
    return _scaled(count, 1024, _BINARY)


def rate(gbps: float | None) -> str:
    """GB/s, 10^9 bytes, in at most 5 characters; a dash where it is not known."""
    if gbps is None:
        return "-"
    decimals = 3 if 0 < gbps < 0.0995 else 2 if gbps < 9.995 else 1 if gbps < 99.95 else 0
    return f"{gbps:.{decimals}f}"


def share(part: float | None) -> str:
    """A share of 1 in percent; a dash where it is not known."""
    return "-" if part is None else f"{part * 100:.0f}%"


def seconds(count: float | None) -> str:
    """A duration in at most 4 characters: 0.4s, 12s, 5m, 3h, 2d; a dash where it is not known."""
    if count is None:
        return "-"
    if count < 9.95:
        return f"{count:.1f}s"
    for length, unit in ((86_400, "d"), (3600, "h"), (60, "m")):
        if count >= length:
            return f"{count / length:.0f}{unit}"
    return f"{count:.0f}s"


def steps(count: int) -> str:
    """Steps in at most 3 characters; the greatest number also stands for what no path leads to."""
    return str(count) if count < MAX_STEPS else f"{MAX_STEPS}+"


def agent(name: str, width: int, ellipsis: str, only_client: str | None = None) -> str:
    """A "client/agent" in `width` cells: the client gives way first, the only one always."""
    name = name.removeprefix(f"{only_client}/")
    client, slash, short = name.partition("/")
    if cell_len(name) <= width or not slash:
        return shorten(name, width, ellipsis)
    room = width - cell_len(short) - 1
    if room >= 1 + len(ellipsis):
        return f"{shorten(client, room, ellipsis)}/{short}"
    return shorten(short, width, ellipsis)


def _scaled(count: float, base: int, units: tuple[str, ...]) -> str:
    amount, unit = float(count), units[0]
    for following in units[1:]:
        if amount < base - 0.5:
            break
        amount, unit = amount / base, following
    return f"{amount:.1f}{unit}" if unit != units[0] and amount < 9.95 else f"{amount:.0f}{unit}"
