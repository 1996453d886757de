"""Who is live: the runs of every client, oldest first in every respect that bounds them.

Every order is that of the events, kept by dicts from which an entry leaves and which it joins
again at the end; each operation is O(1), apart from those that name what they walk over.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from kvflow.runs.live import Key, LiveRun


@dataclass(slots=True)
class _Client:
    runs: dict[Key, LiveRun] = field(default_factory=dict)  # by last event
    named: dict[str, dict[Key, LiveRun]] = field(default_factory=dict)  # by run name
    # Those that stand for a run not begun, by workflow and by whether nothing else is expected.
    expecting: dict[tuple[str, bool], dict[Key, LiveRun]] = field(default_factory=dict)


class Roster:
    """Live runs by key, by client and run name, by age, by silence."""

    def __init__(self) -> None:
        self._clients: dict[str, _Client] = {}  # by last event
        self._silent_since: dict[Key, int] = {}  # in ticks; in rising order

    def __iter__(self) -> Iterator[LiveRun]:
        for client in self._clients.values():
            yield from client.runs.values()

    def __len__(self) -> int:
        return len(self._clients)

    @property
    def runs(self) -> int:
        """How many runs are live. O(clients)."""
        return sum(len(client.runs) for client in self._clients.values())

    def get(self, key: Key) -> LiveRun | None:
        """The live run with this key."""
        client = self._clients.get(key.client)
        return client.runs.get(key) if client else None

    def of_client(self, client: str) -> list[LiveRun]:
        """Live runs of a client, oldest last event first. O(its runs)."""
        return list(self._clients[client].runs.values()) if client in self._clients else []

    def named(self, client: str, run: str) -> list[LiveRun]:
        """Live runs of a client with this name, in whatever workflows. O(these)."""
        known = self._clients.get(client)
        return list(known.named.get(run, {}).values()) if known else []

    def count(self, client: str) -> int:
        """How many live runs a client has."""
        return len(self._clients[client].runs) if client in self._clients else 0

    def oldest_client(self) -> str:
        """The client whose last event is the longest ago. There must be one."""
        return next(iter(self._clients))

    def oldest_run(self, client: str) -> LiveRun:
        """The run of a client whose last event is the longest ago. There must be one."""
        return next(iter(self._clients[client].runs.values()))

    def next_expected(self, client: str, workflow: str) -> LiveRun | None:
        """The run of this workflow that has stood for one not begun for longest.

        One that may itself go on only if there is no other.
        """
        expecting = self._clients[client].expecting if client in self._clients else {}
        filed = expecting.get((workflow, True)) or expecting.get((workflow, False), {})
        return next(iter(filed.values()), None)

    def add(self, live: LiveRun) -> None:
        """A run is live."""
        client = self._clients.setdefault(live.key.client, _Client())
        client.runs[live.key] = live
        client.named.setdefault(live.key.run, {})[live.key] = live

    def touch(self, live: LiveRun, tick: int) -> None:
        """An event of this run: it and its client are the youngest, and not silent so far."""
        key = live.key
        client = self._clients[key.client] = self._clients.pop(key.client)
        client.runs[key] = client.runs.pop(key)
        self._silent_since.pop(key, None)
        if not live.call_ids:
            self._silent_since[key] = tick

    def note_expectation(self, live: LiveRun) -> None:
        """File the run as one that stands for a run not begun, or no longer."""
        only_next = live.expects_only_next
        self._expect_no_more(live.key, not only_next)
        if live.expects_next:
            expecting = self._clients[live.key.client].expecting
            expecting.setdefault((live.key.workflow, only_next), {}).setdefault(live.key, live)
        else:
            self._expect_no_more(live.key, only_next)

    def remove(self, live: LiveRun) -> None:
        """A run is no longer live; nothing of it stays."""
        key, client = live.key, self._clients[live.key.client]
        del client.runs[key]
        del client.named[key.run][key]
        if not client.named[key.run]:
            del client.named[key.run]
        self._expect_no_more(key, True)
        self._expect_no_more(key, False)
        if not client.runs:
            del self._clients[key.client]
        self._silent_since.pop(key, None)

    def silence(self, live: LiveRun, tick: int) -> int:
        """For how many ticks there was no event and no call in flight."""
        return tick - self._silent_since.get(live.key, tick)

    def silent_until(self, tick: int) -> Iterator[Key]:
        """Runs that have been silent since this tick or before, longest first. O(these)."""
        for key, since in self._silent_since.items():
            if since > tick:
                return
            yield key

    def _expect_no_more(self, key: Key, only_next: bool) -> None:
        expecting, where = self._clients[key.client].expecting, (key.workflow, only_next)
        if key in expecting.get(where, {}):
            del expecting[where][key]
            if not expecting[where]:
                del expecting[where]
