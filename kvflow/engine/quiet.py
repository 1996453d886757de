"""For how long nothing is prefetched, because somebody wants the cache quiet to flush it."""

from typing import Any


class Quiet:
    """Begins with a broadcast message and ends by what all ranks see at the same place.

    SGLang gives up a flush by each rank's own clock, which no decision may follow: ranks would load
    in different passes.
    """

    def __init__(self) -> None:
        self._left_s = 0.0
        self._wanted: Any = None

    def lasts(self, pending: Any) -> bool:
        """Whether it goes on.

        Args:
            pending: SGLang's deferred flush, (request, deadline), or None.
        """
        if pending is not None and pending[0] is not self._wanted:
            self._wanted = pending[0]
            self._left_s = self._wanted.timeout_s + 1.0  # endless, if a client says so
        return self._left_s > 0

    def tick(self) -> None:
        """A second has passed, in every rank alike."""
        self._left_s = max(0.0, self._left_s - 1.0)

    def end(self) -> None:
        """The cache has been flushed."""
        self._left_s = 0.0
