"""What is left of a server's mode where SGLang's settings leave nothing but the eviction order."""

from typing import Final

from kvflow.frames import Frame

_DO_MORE: Final = ("prefetch", "full")
"""Modes that do more than to order evictions."""
_ONLY: Final = "eviction order only"


def limited(frame: Frame) -> tuple[str, ...]:
    """That, in words, the fullest first; nothing where the mode does what its name says."""
    if not frame.limits or frame.mode not in _DO_MORE:
        return ()
    return f"{_ONLY}: {', '.join(frame.limits)}", _ONLY
