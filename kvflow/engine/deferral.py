"""How often a waiting call has been passed over because its prefix is still arriving."""


class Deferrals:
    """Counts by call, bounded (paper invariant 31).

    Args:
        most: prefill passes for which one call may be passed over.

    Attributes:
        passes: passes in which a call was passed over; never falls.
        calls: calls that ever were; never falls.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._of: dict[str, tuple[int, int]] = {}  # passes, and forwards before the last of them
        self.passes = self.calls = 0

    def allow(self, call_id: str, forwards: int) -> bool:
        """Whether the call may be passed over once more; if so, that is counted.

        Args:
            call_id: of the call.
            forwards: that the engine has made so far.
        """
        so_far = self.count(call_id)
        if so_far >= self._most:
            return False
        self._of[call_id] = so_far + 1, forwards
        self.passes += 1
        self.calls += so_far == 0
        return True

    def count(self, call_id: str) -> int:
        """How often a waiting call has been passed over."""
        return self._of.get(call_id, (0, 0))[0]

    def was_in_vain(self, call_id: str, forwards: int) -> bool:
        """Whether the call has been passed over, and nothing has run since."""
        return call_id in self._of and self._of[call_id][1] == forwards

    def forget(self, call_id: str) -> None:
        """The call is over."""
        self._of.pop(call_id, None)
