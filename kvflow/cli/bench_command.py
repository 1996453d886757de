"""The command line as others may see it: in reports, which are handed round."""

import re
import shlex
from collections.abc import Iterator, Sequence

_HIDDEN = "***"
_SECRET = re.compile(r"--?[\w-]*(key|password|secret|token(?!s|iz))[\w-]*", re.IGNORECASE)
_IN_URL = re.compile(r"[^/\s=:]+:[^/\s]+@")


def shown(arguments: Sequence[str]) -> str:
    """What was typed after `kvflow`, without keys, tokens and passwords."""
    return shlex.join(["kvflow", *_hidden(arguments)])


def _hidden(arguments: Sequence[str]) -> Iterator[str]:
    is_secret = False
    for argument in arguments:
        name, given, _ = argument.partition("=")
        if is_secret:
            yield _HIDDEN
            is_secret = False
        elif not _SECRET.fullmatch(name):
            yield _IN_URL.sub(f"{_HIDDEN}@", argument)
        elif given:
            yield f"{name}={_HIDDEN}"
        else:
            yield argument
            is_secret = True
