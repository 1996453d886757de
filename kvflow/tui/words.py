"""Sentences that several views have, and amounts inside sentences; columns have shorter ones."""

from typing import Final

NO_FRAME: Final = "no frame yet"
NO_AGENT: Final = "no agent has called yet: calls need a tag (kvflow.client)"

_BYTE_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


def plural(number: int, noun: str) -> str:
    """A number and its noun: 1 step, 2 steps."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def bytes_of(number: float) -> str:
    """Bytes with an IEC unit: 512 B, 1.5 MiB, 12 GiB."""
    unit, *larger = _BYTE_UNITS
    for following in larger:
        if number < 1023.5:
            break
        number, unit = number / 1024, following
    return f"{number:.1f} {unit}" if unit != "B" and number < 9.95 else f"{number:.0f} {unit}"


def clock(seconds: float) -> str:
    """A place in a recording: 0:42, 3:07, 1:02:03."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
