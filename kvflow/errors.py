"""Errors that a person reads: what failed, why, and what to type next."""

from enum import IntEnum
from typing import Final

_CONTROLS: Final = dict.fromkeys((*range(32), *range(127, 160)), "\ufffd")
_BUT_NEWLINES: Final = {code: to for code, to in _CONTROLS.items() if code != ord("\n")}


class ExitCode(IntEnum):
    """What a kvflow process ends with. Documented in the README; additive only."""

    OK = 0
    FAILURE = 1
    USAGE = 2  # bad flags, bad recipe, bad config
    UNREACHABLE = 3  # no server there, or not one that answers as it should
    AUTH = 4
    CHECK_FAILED = 5  # `bench --fail-if`, `doctor`
    MISSING = 6  # a GPU or an optional part is not here
    HANGUP = 129
    INTERRUPTED = 130
    TERMINATED = 143


def printable(text: str) -> str:
    """The text without what a terminal obeys instead of showing it: control characters."""
    return text if text.isprintable() else text.translate(_CONTROLS)


class KvflowError(Exception):
    """An expected failure, shown as three lines and never as a traceback.

    Args:
        what: what failed, with the value that failed.
        why: the cause, as far as it is known.
        hint: what to do, best as a command to type.
    """

    exit_code: ExitCode = ExitCode.FAILURE

    def __init__(self, what: str, why: str = "", hint: str = "") -> None:
        super().__init__(what)
        self.what, self.why, self.hint = what, why, hint

    def __str__(self) -> str:
        """The three lines as a person sees them; empty ones are left out."""
        lines = [f"error: {self.what}"]
        if self.why:
            lines.append(f"  why: {self.why}")
        if self.hint:
            lines.append(f" hint: {self.hint}")
        return "\n".join(lines).translate(_BUT_NEWLINES)


class UsageError(KvflowError):
    """The person asked for something that makes no sense, or that contradicts itself."""

    exit_code = ExitCode.USAGE


class RecipeError(UsageError):
    """A recipe that cannot be used. `what` begins with file:line:col and the path inside."""


class ServerUnreachable(KvflowError):
    """Nothing answers at the URL, or what answers is not a server kvflow can talk to."""

    exit_code = ExitCode.UNREACHABLE


class NotAuthorised(KvflowError):
    """The server wants a key, or another one."""

    exit_code = ExitCode.AUTH


class MissingPart(KvflowError):
    """An optional part (engine, console, GPU) that the command needs is not on this machine."""

    exit_code = ExitCode.MISSING
