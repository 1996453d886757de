"""A mistake of kvflow's must cost speed, never the server: what fails is given up, once.

For the parts that keep track (who speaks, what is marked, what is spent) and those that decide what
to prefetch or to pass over. They touch no pool and no lock: without them the cache is whole, and
goes on as in mode off. Whatever failed failed in every rank, because all ranks see the same.
"""

import functools
import logging
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")
_log = logging.getLogger(__name__)


def guarded(
    track: Callable[Concatenate[Any, P], R],
) -> Callable[Concatenate[Any, P], R | None]:
    """A method that does nothing, and returns None, once its owner is `degraded`.

    No exception gets out of it; the first makes the owner `give_up`.
    """

    @functools.wraps(track)
    def safely(self: Any, *args: P.args, **kwargs: P.kwargs) -> R | None:
        if self.degraded:
            return None
        try:
            return track(self, *args, **kwargs)
        except Exception:  # noqa: BLE001 - that is the point
            _log.exception("kvflow: %s failed; going on as in mode off", track.__name__)
            self.give_up()
            return None

    return safely  # type: ignore[return-value]  # functools.wraps names self
