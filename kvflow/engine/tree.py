"""The tree core: SGLang's Python core, with ranks on its nodes and an order over its leaves.

It carries what happens to nodes (split, removed, touched, matched) to `kvflow.policy.rank` and
`kvflow.order`, and asks `kvflow.policy.backup` what goes to the host. It decides nothing itself.
In mode off ranks are access times alone, so victims are those of SGLang's own core.
"""

from collections.abc import Iterable
from typing import Any

from kvflow.engine.calls import Author, Call
from kvflow.engine.leaves import LeafSet
from kvflow.engine.ledger import Outcome
from kvflow.engine.loading_tree import LoadingTreeCore
from kvflow.engine.marks import Prefix, Tail
from kvflow.frames import Why
from kvflow.order import EvictionOrder, ReservedOrder
from kvflow.policy.backup import may_be_asked_for
from kvflow.policy.rank import KEPT, Rank, Ranks
from kvflow.policy.share import UntaggedShare
from kvflow.recipe.model import Mode

Mark = Prefix | Tail
"""Who will ask again for what ends at a node."""


class KvflowTreeCore(LoadingTreeCore):
    """A radix tree whose leaves are kept in the order in which they are to be evicted.

    Args:
        params: SGLang's CacheInitParams; `components`: its components by type.
        mode: what is at work to begin with.
        untagged_steps: steps that nodes without a mark rank as.

    Attributes:
        device_order: leaves of the device tier, first victim first; `host_order` likewise.
        inserting: the tagged call whose KV is being inserted right now, if any.
        share: untagged KV on the device, and how much of it may go.
    """

    def __init__(self, params: Any, components: Any, *, mode: Mode, untagged_steps: int) -> None:
        self._mode: Mode = mode
        self._untagged_steps = untagged_steps
        self.inserting: Call | None = None
        self.share = UntaggedShare()
        super().__init__(params, components)

    def reset(self) -> None:
        """Forget the tree, and all that was known of its nodes."""
        super().reset()
        self.ranks: Ranks[Mark] = Ranks(self._id_above, self._untagged_steps)
        self._creators: dict[int, Author] = {}
        self.share.forget_nodes()
        self.device_order: ReservedOrder[Any] = ReservedOrder(
            self.rank, self.is_untagged, lambda node: len(node.key), lambda: self.share.spare
        )
        self.host_order: EvictionOrder[Any] = EvictionOrder(self.rank)
        self.evictable_device_leaves = LeafSet(self.device_order)
        self.evictable_host_leaves = LeafSet(self.host_order)

    # What is at work

    @property
    def mode(self) -> Mode:
        """The mode at work."""
        return self._mode

    @mode.setter
    def mode(self, mode: Mode) -> None:
        """Switch. Every leaf ranks anew: O(leaves), once, at an operator's word."""
        if mode == self._mode:
            return
        self._mode = mode
        self.watch.end()
        for leaves, order in (
            (self.evictable_device_leaves, self.device_order),
            (self.evictable_host_leaves, self.host_order),
        ):
            for leaf in leaves:
                order.reranked(leaf)

    def rank(self, node: Any) -> Rank:
        """What decides when a leaf is evicted; the smaller goes first."""
        last_access = float(node.last_access_time)  # numpy's is slow to compare
        if self._mode == "off":
            return KEPT, 0, last_access, node.id
        return self.ranks.rank(node.id, last_access)

    def is_untagged(self, node: Any) -> bool:
        """Whether the node belongs to the share of untagged traffic."""
        return self._mode != "off" and self._is_nobodys(node)

    def _is_nobodys(self, node: Any) -> bool:
        """Whether no tagged call made the node, or one that went away, and nobody marks it."""
        return self.ranks.is_unknown(node.id) and node.id not in self._creators

    def why(self, node: Any) -> Why:
        """What a node's rank comes from."""
        if self._mode == "off":
            return Why.ACCESS
        if self.ranks.is_marked(node.id):
            return Why.STEPS
        return Why.UNTAGGED if self.ranks.is_unknown(node.id) else Why.SPENT

    # What is known of nodes

    def place(self, mark: Mark, node_id: int, steps: int) -> None:
        """A fixed prefix ends at this node, and its agent speaks in so many steps."""
        if node_id != self.root_node.id:
            self.changed((*self._ends(mark), node_id))
            self._rerank(self.ranks.place(mark, node_id, steps))

    def set_steps(self, mark: Mark, steps: int) -> None:
        """The agent of a mark speaks sooner or later than before."""
        self._rerank(self.ranks.set_steps(mark, steps))

    def lift(self, mark: Mark) -> None:
        """Nobody will ask for this prefix any more."""
        self.changed(self._ends(mark))
        self._rerank(self.ranks.lift(mark))

    def _ends(self, mark: Mark) -> list[int]:
        end = self.ranks.end(mark)
        return [] if end is None else [end]

    def matched(self, node_id: int, author: Author) -> None:
        """A call has matched the path down to this node: none of it is spent any more.

        What it matches of its own, or of its own conversation, stays that.
        """
        hit = []
        for node in self.path(node_id):
            self.outcomes.found(node.id, len(node.key), loading=self.is_loading(node.id))
            creator = self._creators.get(node.id)
            if creator is not None and creator != author:
                self._disown(node)
            if creator != author and self.ranks.hit(node.id):
                hit.append(node.id)
        self._rerank(hit)

    def settle(self, node_id: int, call_id: str, boundary: int | None) -> None:
        """A call is over: what it alone made beyond its fixed prefix is spent.

        Args:
            node_id: where its path ends.
            call_id: its id.
            boundary: tokens of its fixed prefix; None if nothing is to be spent.
        """
        spent = []
        end = self.depth(node_id)
        for node in self.path(node_id):
            start = end - len(node.key)
            if self._creators.get(node.id) == call_id:
                self._disown(node)
                if boundary is not None and start >= boundary and self.ranks.spend(node.id):
                    spent.append(node.id)
            end = start
        self._rerank(spent)

    def go_on(self, tail: Tail, node_id: int, steps: int) -> None:
        """A conversation ends at this node for now; what it does not go on from is spent."""
        if node_id == self.root_node.id:  # less than a page
            self.conversation_ended(tail)
            return
        before = self.ranks.end(tail)
        self.place(tail, node_id, steps)
        if before is not None:
            self._spend_what_is_left(before, tail)

    def let_go(self, tail: Tail, node_id: int) -> None:
        """A turn of a conversation went away: what only it made is nobody's."""
        for node in self.path(node_id):
            if self._creators.get(node.id) == tail and not self.ranks.is_marked(node.id):
                self._disown(node)

    def conversation_ended(self, tail: Tail) -> None:
        """Nobody will go on with it: what it alone made is spent."""
        before = self.ranks.end(tail)
        if before is not None:
            self.lift(tail)
            self._spend_what_is_left(before, tail)

    def _spend_what_is_left(self, node_id: int, tail: Tail) -> None:
        spent = []
        for node in self.path(node_id):
            if self._creators.get(node.id) == tail and not self.ranks.is_marked(node.id):
                self._disown(node)
                if self.ranks.spend(node.id):
                    spent.append(node.id)
        self._rerank(spent)

    def _disown(self, node: Any) -> None:
        """The node is not one call's any more."""
        del self._creators[node.id]
        self._count(node)
        self.device_order.reranked(node)

    def _id_above(self, node_id: int) -> int | None:
        parent = self._node_arena[node_id].parent
        return None if parent is self.root_node else parent.id

    def _rerank(self, node_ids: Iterable[int]) -> None:
        for node_id in node_ids:
            node = self._node_arena[node_id]
            self._one_changed(node)
            self._count(node)
            if self._mode == "off":
                continue
            self.device_order.reranked(node)
            self.host_order.reranked(node)

    def _count(self, node: Any) -> None:
        """Tell the share what there is of a node: it came, went, moved, was cut or marked."""
        counts = not node.evicted and self._is_nobodys(node)
        self.share.count(node.id, len(node.key) if counts else 0)

    # What SGLang does with nodes

    def _split_node(self, key: Any, child: Any, split_len: int) -> Any:
        new_node, action = super()._split_node(key, child, split_len)
        self.ranks.split(new_node.id, child.id)
        if child.id in self._creators:
            self._creators[new_node.id] = self._creators[child.id]
        self._count(new_node)
        self._count(child)
        return new_node, action

    def commit_load_back(self, node_id: int, *args: Any) -> Any:
        """As SGLang's."""
        result = super().commit_load_back(node_id, *args)
        for node in self.path(node_id):
            self._count(node)
        return result

    def _add_new_node(self, parent: Any, *args: Any, **kwargs: Any) -> Any:
        node = super()._add_new_node(parent, *args, **kwargs)
        if self.inserting is not None:
            self._creators[node.id] = self.inserting.author
            self.device_order.reranked(node)
        self._count(node)
        return node

    def _unevict_node_on_insert(self, node: Any, *args: Any, **kwargs: Any) -> Any:
        result = super()._unevict_node_on_insert(node, *args, **kwargs)
        self._count(node)
        return result

    def _remove_leaf_from_parent(self, node: Any) -> None:
        above = self._id_above(node.id)
        super()._remove_leaf_from_parent(node)
        self.ranks.removed(node.id, above)
        self._creators.pop(node.id, None)
        self.share.count(node.id, 0)

    def evict_device_leaf(self, node_id: int, is_write_back: bool) -> Any:
        """Evict one device leaf, and keep in the ledger what went and why."""
        node = self._node_arena[node_id]
        why, rank, leaving = self.why(node), self.rank(node), self.ledger.look(node)
        result = super().evict_device_leaf(node_id, is_write_back)
        kept_on_host = node.backuped or result.backup_kv is not None
        outcome: Outcome = "demoted" if kept_on_host else "dropped"
        self.ledger.evicted("device", leaving, why, rank, outcome)
        self.outcomes.lost(node_id, leaving.tokens)
        return result

    def _demote(self, node: Any, *args: Any, **kwargs: Any) -> Any:
        result = super()._demote(node, *args, **kwargs)
        self._count(node)
        return result

    def _evict_host_leaf(self, node: Any, *args: Any, **kwargs: Any) -> None:
        leaving = self.ledger.look(node)
        self.ledger.evicted("host", leaving, self.why(node), self.rank(node), "dropped")
        super()._evict_host_leaf(node, *args, **kwargs)

    def _inc_hit_count_and_check(self, node: Any) -> bool:
        wanted = super()._inc_hit_count_and_check(node)
        return bool(wanted) and self._worth_backing_up(node)

    def _worth_backing_up(self, node: Any) -> bool:
        call = self.inserting
        if call is None or self._mode == "off":
            return True
        end = self.depth(node.id)
        if may_be_asked_for(
            end - len(node.key),
            boundary=end if call.converses else call.boundary,
            hit=self._creators.get(node.id) != call.author,
            storage=self.enable_storage,
        ):
            return True
        self.ledger.not_backed_up(len(node.key))
        return False
