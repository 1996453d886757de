"""A radix tree put together from frames: nodes by id, parents, children.

Pure. A whole frame replaces the tree, a delta changes it. What a server sends is not trusted to
be a tree: no walk here recurses, and none goes in circles.
"""

from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

from kvflow.frames import Frame, Node

_NO_CHILDREN: dict[int, None] = {}


class Change(NamedTuple):
    """What a frame changed.

    Attributes:
        before: the nodes that are different now, as they were; None for a new one.
        gone: the nodes that left, as they were.
    """

    before: dict[int, Node | None]
    gone: list[Node]


class Tree:
    """The nodes that a server has shown.

    Attributes:
        nodes: by id.
        complete: whether these are all; False while more frames are to follow.
    """

    def __init__(self) -> None:
        self.nodes: dict[int, Node] = {}
        self.complete = False
        self._children: dict[int, dict[int, None]] = {}  # inner dicts are ordered sets
        self._unseen_parents: dict[int, None] = {}  # the root, and what is still to come

    def apply(self, frame: Frame) -> Change:
        """Take over a frame. Returns what is different now."""
        self.complete = not frame.nodes_left_out
        if frame.delta_since is None:
            present = {node.id for node in frame.nodes}
            gone = [one for one in self.nodes if one not in present]
        else:
            gone = [one for one in dict.fromkeys(frame.gone) if one in self.nodes]
        change = Change({}, [self._remove(one) for one in gone])
        for node in frame.nodes:
            before = self.nodes.get(node.id)
            if before != node:
                change.before[node.id] = before
                self._put(node, before)
        return change

    def copy(self) -> "Tree":
        """A tree that stays as this one is now. O(nodes)."""
        copied = Tree()
        copied.nodes, copied.complete = dict(self.nodes), self.complete
        copied._children = {parent: dict(below) for parent, below in self._children.items()}
        copied._unseen_parents = dict(self._unseen_parents)
        return copied

    @property
    def links(self) -> Mapping[int, Collection[int]]:
        """Ids of the nodes right below, by the id of the one above; only of those that have any."""
        return self._children

    def children(self, node_id: int) -> Collection[int]:
        """Ids of the nodes right below, in the order in which they came."""
        return self._children.get(node_id, _NO_CHILDREN)

    def tops(self) -> list[int]:
        """Ids of the nodes with none above: those below the root, and what came before theirs."""
        return [child for parent in self._unseen_parents for child in self._children[parent]]

    def path(self, node_id: int) -> list[Node]:
        """The nodes from the topmost one down to this one; empty for an unknown id."""
        found: dict[int, Node] = {}
        node = self.nodes.get(node_id)
        while node is not None and node.id not in found:
            found[node.id] = node
            node = self.nodes.get(node.parent)
        return list(found.values())[::-1]

    def below(self, node_id: int) -> Iterator[Node]:
        """The nodes below this one, parents before their children."""
        todo = list(self.children(node_id))
        while todo:
            one = todo.pop()
            if one != node_id:
                yield self.nodes[one]
                todo.extend(self.children(one))

    def _put(self, node: Node, before: Node | None) -> None:
        self.nodes[node.id] = node
        if before is not None:
            if before.parent == node.parent:
                return
            self._unlink(before)
        self._unseen_parents.pop(node.id, None)
        self._children.setdefault(node.parent, {})[node.id] = None
        if node.parent not in self.nodes:
            self._unseen_parents[node.parent] = None

    def _remove(self, node_id: int) -> Node:
        node = self.nodes.pop(node_id)
        self._unlink(node)
        if node_id in self._children:
            self._unseen_parents[node_id] = None
        return node

    def _unlink(self, node: Node) -> None:
        siblings = self._children[node.parent]
        del siblings[node.id]
        if not siblings:
            del self._children[node.parent]
            self._unseen_parents.pop(node.parent, None)
