"""The rows of the tree on a screen: filtered, sorted, collapsed, as a tree or as a list.

Pure. What is computed for each row of a large tree is an id and a level; what a row shows is
looked up when it is drawn.
"""

from collections.abc import Callable, Collection, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from difflib import get_close_matches
from enum import StrEnum
from functools import partial
from operator import attrgetter
from typing import Any, Final, NamedTuple, Self, overload

from kvflow.errors import UsageError
from kvflow.frames import Node, State
from kvflow.tui.filter import EVERYTHING, Filter
from kvflow.tui.store import Store


class Column(StrEnum):
    """What rows can be sorted by."""

    ID = "id"
    TOKENS = "tokens"
    DEPTH = "depth"
    STATE = "state"
    STEPS = "steps"
    WHY = "why"
    AGENTS = "agents"
    LOCKS = "locks"
    HITS = "hits"
    USED = "used"  # accesses since the last one, by SGLang's logical clock


@dataclass(frozen=True, slots=True)
class Sort:
    """By what rows are sorted. Siblings among themselves in a tree."""

    column: Column = Column.ID
    descending: bool = False

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read `column`, or `-column` for descending.

        Raises:
            UsageError: no such column.
        """
        name = text.strip().lower().removeprefix("-")
        try:
            return cls(Column(name), text.strip().startswith("-"))
        except ValueError:
            close = get_close_matches(name, list(Column), n=1)
            raise UsageError(
                f"cannot sort by {text!r}",
                f"columns are {', '.join(Column)}; - before one turns it round",
                f"did you mean {close[0]}?" if close else "",
            ) from None

    def by(self, steps: int) -> Self:
        """The sort by the column so many further to the right."""
        columns = list(Column)
        return replace(self, column=columns[(columns.index(self.column) + steps) % len(columns)])

    def turned(self) -> Self:
        """The other way round."""
        return replace(self, descending=not self.descending)


NATURAL: Final = Sort()
"""In the order in which the server made the nodes."""


@dataclass(frozen=True, slots=True)
class View:
    """What of a tree is shown, and how.

    Attributes:
        filter: nodes that match are shown; in a tree, what is above them too.
        sort: order of siblings, in a list of all rows.
        flat: a list instead of a tree.
        collapsed: ids of nodes below which nothing is shown. A live set may be passed.
    """

    filter: Filter = EVERYTHING
    sort: Sort = NATURAL
    flat: bool = False
    collapsed: AbstractSet[int] = frozenset()


class Row(NamedTuple):
    """One line of the tree.

    Attributes:
        node: as the latest frame has it; a ghost as it was.
        level: how many shown nodes stand above it.
        expanded: whether what is below is shown; None if nothing is below.
        matched: False if it is only here because something below it matches.
        ghost: it has just left the tree.
        freshness: frames since it last looked different, 0 or 1, else None.
    """

    node: Node
    level: int
    expanded: bool | None
    matched: bool
    ghost: bool
    freshness: int | None


class Rows(Sequence[Row]):
    """The rows of a store as it was when they were made; valid until its next frame."""

    def __init__(self, store: Store, view: View, ids: list[int]) -> None:
        self._store, self._view, self._ids = store, view, ids
        self._levels: dict[int, int] = {}  # of the nodes that were asked for, and those above

    def __len__(self) -> int:
        return len(self._ids)

    @overload
    def __getitem__(self, index: int) -> Row: ...
    @overload
    def __getitem__(self, index: slice) -> list[Row]: ...
    def __getitem__(self, index: int | slice) -> Row | list[Row]:
        if isinstance(index, slice):
            return [self[one] for one in range(*index.indices(len(self)))]
        node_id, store = self._ids[index], self._store
        node = store.tree.nodes.get(node_id)
        ghost = node is None
        if node is None:
            node = store.ghosts[node_id].node
        expanded = None
        if not self._view.flat and store.tree.children(node_id):
            expanded = node_id not in self._view.collapsed
        return Row(
            node=node,
            level=0 if self._view.flat else self._level(node),
            expanded=expanded,
            matched=self._view.filter.matches(node),
            ghost=ghost,
            freshness=store.freshness(node_id),
        )

    def _level(self, node: Node) -> int:
        """How many nodes are above. O(those of which nobody has asked yet)."""
        nodes, levels = self._store.tree.nodes, self._levels
        path: list[int] = []
        above: Node | None = node
        while above is not None and above.id not in levels:
            path.append(above.id)
            above = nodes.get(above.parent)
        level = -1 if above is None else levels[above.id]
        for node_id in reversed(path):
            level += 1
            levels[node_id] = level
        return level

    def id_at(self, index: int) -> int:
        """The id of the node in a row."""
        return self._ids[index]

    def place(self, node_id: int) -> int | None:
        """The row of a node; None if it has none."""
        try:
            return self._ids.index(node_id)
        except ValueError:
            return None


def flatten(store: Store, view: View) -> Rows:
    """The rows to show. O(rows log siblings), O(tree) with a filter; recursion-free."""
    if view.flat:
        nodes = [node for node in store.tree.nodes.values() if view.filter.matches(node)]
        ids = [node.id for node in sorted(nodes, key=_KEYS[view.sort.column])]
        if view.sort.descending:
            ids.reverse()
        return Rows(store, view, ids)
    return Rows(store, view, _walk(store, view))


def keep_selection(before: Rows, selected: int, now: Rows) -> int | None:
    """The row of a selected node after its tree has changed.

    A node that is gone hands its selection to the row that took its place.

    Args:
        before: the rows in which it was selected.
        selected: its id.
        now: the rows now.

    Returns:
        A row, or None if there are none.
    """
    place = now.place(selected)
    if place is not None:
        return place
    was = before.place(selected)
    return min(was or 0, len(now) - 1) if len(now) else None


def _walk(store: Store, view: View) -> list[int]:
    """Ids, depth first. Bare numbers only: there may be fifty thousand, and most are leaves."""
    tree, collapsed, links = store.tree, view.collapsed, store.tree.links
    in_order = _order(store, view)
    ghosts = _ghosts_by_parent(store, view.filter)
    ids = [one for parent in ghosts if parent not in tree.nodes for one in ghosts[parent]]
    special = links.keys() | ghosts.keys()
    show, levels = ids.append, [iter(in_order(tree.tops()))]
    while levels:
        for node_id in levels[-1]:
            show(node_id)
            if node_id not in special or node_id in collapsed:
                continue
            ids += ghosts.get(node_id, ())
            if node_id in links:
                levels.append(iter(in_order(links[node_id])))
                break
        else:
            levels.pop()
    return ids


def _order(store: Store, view: View) -> Callable[[Collection[int]], list[int]]:
    """What puts siblings in order, those that are shown."""
    nodes, key, turned = store.tree.nodes, _KEYS[view.sort.column], view.sort.descending
    shown = _with_paths(store, view.filter) if view.filter else None
    if shown is None and view.sort.column is Column.ID:  # the usual case, without a look at nodes
        return partial(sorted, reverse=turned)

    def in_order(siblings: Collection[int]) -> list[int]:
        if shown is not None:
            siblings = [one for one in siblings if one in shown]
        if len(siblings) < 2:
            return list(siblings)
        return [
            node.id for node in sorted((nodes[one] for one in siblings), key=key, reverse=turned)
        ]

    return in_order


def _with_paths(store: Store, wanted: Filter) -> set[int]:
    nodes = store.tree.nodes
    shown: set[int] = set()
    for node in nodes.values():
        if wanted.matches(node):
            at: Node | None = node
            while at is not None and at.id not in shown:
                shown.add(at.id)
                at = nodes.get(at.parent)
    return shown


def _ghosts_by_parent(store: Store, wanted: Filter) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for node_id, ghost in store.ghosts.items():
        if wanted.matches(ghost.node):
            found.setdefault(ghost.node.parent, []).append(node_id)
    return found


_STATES = {state: place for place, state in enumerate(State)}
_KEYS: dict[Column, Callable[[Node], Any]] = {
    Column.ID: attrgetter("id"),
    Column.TOKENS: attrgetter("tokens", "id"),
    Column.DEPTH: attrgetter("depth", "id"),
    Column.STATE: lambda node: (_STATES[node.state], node.id),
    Column.STEPS: attrgetter("steps", "id"),
    Column.WHY: attrgetter("why", "id"),
    Column.AGENTS: attrgetter("agents", "id"),
    Column.LOCKS: attrgetter("locks", "id"),
    Column.HITS: attrgetter("hits", "id"),
    Column.USED: lambda node: (-node.last_access, node.id),
}
