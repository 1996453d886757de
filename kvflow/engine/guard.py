"""A mistake of kvflow's must cost speed, never the server: what fails is given up, once.

For the parts that only keep track (who speaks, what is marked, what is spent). They touch no pool
and no lock, so the cache is whole without them, and goes on as in mode off. Whatever failed failed
in every rank, because all ranks see the same.
"""

import functools
import logging
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec

P = ParamSpec("P")
_log = logging.getLogger(__name__)


def guarded(
    track: Callable[Concatenate[Any, P], None],
) -> Callable[Concatenate[Any, P], None]:
    """A method that only keeps track: it does nothing once its owner is `degraded`.

    No exception gets out of it; the first makes the owner `give_up`.
    """

    @functools.wraps(track)
    def safely(self: Any, *args: P.args, **kwargs: P.kwargs) -> None:
        if self.degraded:
            return
        try:
            track(self, *args, **kwargs)
        except Exception:  # noqa: BLE001 - that is the point
            _log.exception("kvflow: %s failed; going on as in mode off", track.__name__)
            self.give_up()

    return safely  # type: ignore[return-value]  # functools.wraps names self
