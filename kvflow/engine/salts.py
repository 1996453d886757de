"""Which tenants' KV the runs of a client ask for.

Steps are of a client's agents, but one client may serve many tenants, whose calls differ in their
cache salt and share no KV. A run brings its own tenant's prefixes nearer, and nobody else's.
"""

from collections import Counter, OrderedDict
from collections.abc import Iterable

Salt = str | None
Tenant = tuple[str, Salt]
"""A client, and the cache salt of one of those whom it serves."""
_MOST_RUNS = 4096
_LAST = ""  # no run can have this name


class Salts:
    """The salts in use: those of a client's live runs, and that of the run that ended last.

    The one that ended last stands for the next one, which is expected before it has spoken. Of
    runs that nobody ends, those that were quiet for longest are forgotten, whosever they are.
    Every event is O(1).
    """

    def __init__(self) -> None:
        self._of_run: OrderedDict[tuple[str, str], Salt] = OrderedDict()
        self._in_use: dict[str, Counter[Salt]] = {}

    def in_use(self, client: str, salt: Salt) -> bool:
        """Whether a run of this client would ask for KV of this salt."""
        return salt in self._in_use.get(client, ())

    def of(self, client: str) -> Iterable[Salt]:
        """The salts of a client that are in use, the one that came into use first before others."""
        return self._in_use.get(client, ())

    def spoke(self, client: str, run: str, salt: Salt) -> set[Tenant]:
        """A call of a run is here. Returns whose salts came into use or went out of it."""
        changed: set[Tenant] = set()
        self._enter(client, run, salt, changed)
        if len(self._of_run) > _MOST_RUNS:
            self._leave(*next(iter(self._of_run)), changed)
        return changed

    def ended(self, client: str, run: str) -> set[Tenant]:
        """A run is over. Returns likewise; nothing for a run that is not known."""
        changed: set[Tenant] = set()
        if (client, run) in self._of_run:
            salt = self._leave(client, run, changed)
            self._enter(client, _LAST, salt, changed)
        return changed

    def _enter(self, client: str, run: str, salt: Salt, changed: set[Tenant]) -> None:
        if (client, run) in self._of_run:
            self._leave(client, run, changed)
        self._of_run[client, run] = salt
        in_use = self._in_use.setdefault(client, Counter())
        if salt not in in_use:
            changed ^= {(client, salt)}
        in_use[salt] += 1

    def _leave(self, client: str, run: str, changed: set[Tenant]) -> Salt:
        salt, in_use = self._of_run.pop((client, run)), self._in_use[client]
        in_use[salt] -= 1
        if not in_use[salt]:
            del in_use[salt]
            changed ^= {(client, salt)}
        if not in_use:
            del self._in_use[client]
        return salt
