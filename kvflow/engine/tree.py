"""The tree core: SGLang's Python core, with ranks on its nodes and an order over its leaves.

It carries what happens to nodes (split, removed, touched, matched) to `kvflow.policy.rank` and
`kvflow.order`, and asks `kvflow.policy.backup` what goes to the host. It decides nothing itself.
In mode off ranks are access times alone, so victims are those of SGLang's own core.
"""

from collections.abc import Iterable
from typing import Any

from sglang.srt.mem_cache.unified_cache.components import ComponentType

from kvflow.engine.calls import Call
from kvflow.engine.leaves import LeafSet
from kvflow.engine.ledger import Outcome
from kvflow.engine.observed_tree import ObservedTreeCore
from kvflow.frames import Why
from kvflow.order import EvictionOrder
from kvflow.policy import backup
from kvflow.policy.rank import KEPT, SPENT, Rank, Ranks
from kvflow.recipe.model import Mode

Mark = tuple[str, str, str | None, str | None]
"""(client, agent, extra key, cache salt): whose fixed prefix it is, in which namespace."""


class KvflowTreeCore(ObservedTreeCore):
    """A radix tree whose leaves are kept in the order in which they are to be evicted.

    Args:
        params: SGLang's CacheInitParams; `components`: its components by type.
        mode: what is at work to begin with.
        untagged_steps: steps that nodes without a mark rank as.

    Attributes:
        device_order: leaves of the device tier, first victim first; `host_order` likewise.
        inserting: the tagged call whose KV is being inserted right now, if any.
    """

    def __init__(self, params: Any, components: Any, *, mode: Mode, untagged_steps: int) -> None:
        self._mode: Mode = mode
        self._untagged_steps = untagged_steps
        self.inserting: Call | None = None
        super().__init__(params, components)

    def reset(self) -> None:
        """Forget the tree, and all that was known of its nodes."""
        super().reset()
        self.ranks: Ranks[Mark] = Ranks(self._id_above, self._untagged_steps)
        self._creators: dict[int, str] = {}
        self._loading: dict[int, dict[int, None]] = {}
        self.device_order: EvictionOrder[Any] = EvictionOrder(self.rank)
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

    def why(self, node: Any) -> Why:
        """What a node's rank comes from."""
        if self._mode == "off":
            return Why.ACCESS
        if self.ranks.is_marked(node.id):
            return Why.STEPS
        spent = self.ranks.rank(node.id, node.last_access_time)[0] == SPENT
        return Why.SPENT if spent else Why.UNTAGGED

    # What is known of nodes

    def place(self, mark: Mark, node_id: int, steps: int) -> None:
        """A fixed prefix ends at this node, and its agent speaks in so many steps."""
        if node_id != self.root_node.id:
            self._rerank(self.ranks.place(mark, node_id, steps))

    def set_steps(self, mark: Mark, steps: int) -> None:
        """The agent of a mark speaks sooner or later than before."""
        self._rerank(self.ranks.set_steps(mark, steps))

    def matched(self, node_id: int, call_id: str) -> None:
        """A call has matched the path down to this node: none of it is spent any more."""
        hit = []
        for node in self.path(node_id):
            self.outcomes.found(node.id, len(node.key), loading=self.is_loading(node.id))
            creator = self._creators.get(node.id)
            if creator is not None and creator != call_id:
                del self._creators[node.id]
            if creator != call_id and self.ranks.hit(node.id):
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
                del self._creators[node.id]
                if boundary is not None and start >= boundary and self.ranks.spend(node.id):
                    spent.append(node.id)
            end = start
        self._rerank(spent)

    def path(self, node_id: int) -> list[Any]:
        """The nodes from this one up to the root, without the root; none for an unknown id."""
        found = []
        node = self._node_arena.get(node_id)
        while node is not None and node is not self.root_node:
            found.append(node)
            node = node.parent
        return found

    def host_only_tokens(self, node_id: int) -> int:
        """Tokens on the path to this node that are on the host alone and not on their way."""
        return sum(len(node.key) for node in self.path(node_id) if node.evicted)

    def bared(self, node: Any, gone: set[int]) -> Any:
        """The node itself if it is a device leaf once those in `gone` have left; else None."""
        if node is self.root_node or node.evicted or node in self.evictable_device_leaves:
            return None
        if any(data.lock_ref > 0 for data in node.component_data):
            return None
        stay = any(not c.evicted and c.id not in gone for c in node.children.values())
        return None if stay else node

    def depth(self, node_id: int) -> int:
        """Tokens from the root to the end of this node."""
        return sum(len(node.key) for node in self.path(node_id))

    def is_loading(self, node_id: int) -> bool:
        """Whether the node's KV is on its way from the host to the device."""
        return any(node_id in nodes for nodes in self._loading.values())

    def is_arriving(self, node_id: int) -> bool:
        """Whether any part of the path down to the node is on its way to the device."""
        return bool(self._loading) and any(self.is_loading(n.id) for n in self.path(node_id))

    def moving_tokens(self, writing: Iterable[int]) -> int:
        """Tokens whose host copy is being read or written; `writing`: nodes being written."""
        loading = (node for nodes in self._loading.values() for node in nodes)
        moving = dict.fromkeys([*writing, *loading])
        return sum(len(self._node_arena[node].key) for node in moving if node in self._node_arena)

    def _id_above(self, node_id: int) -> int | None:
        parent = self._node_arena[node_id].parent
        return None if parent is self.root_node else parent.id

    def _rerank(self, node_ids: Iterable[int]) -> None:
        for node_id in node_ids:
            node = self._node_arena[node_id]
            self._one_changed(node)
            if self._mode == "off":
                continue
            self.device_order.reranked(node)
            self.host_order.reranked(node)

    # What SGLang does with nodes

    def _split_node(self, key: Any, child: Any, split_len: int) -> Any:
        new_node, action = super()._split_node(key, child, split_len)
        self.ranks.split(new_node.id, child.id)
        if child.id in self._creators:
            self._creators[new_node.id] = self._creators[child.id]
        for nodes in self._loading.values():
            if child.id in nodes:
                nodes[new_node.id] = None
        return new_node, action

    def commit_load_back(
        self, node_id: int, device_indices: Any, kv_xfer: Any, comp_xfers: Any
    ) -> Any:
        """As SGLang's; the nodes count as loading until `finish_load_back`."""
        self._loading[node_id] = dict.fromkeys(kv_xfer.nodes_to_load or ())
        return super().commit_load_back(node_id, device_indices, kv_xfer, comp_xfers)

    def finish_load_back(self, anchor_node_id: int) -> Any:
        """As SGLang's: the copy is complete."""
        self._loading.pop(anchor_node_id, None)
        return super().finish_load_back(anchor_node_id)

    def _add_new_node(self, parent: Any, *args: Any, **kwargs: Any) -> Any:
        node = super()._add_new_node(parent, *args, **kwargs)
        if self.inserting is not None:
            self._creators[node.id] = self.inserting.id
        return node

    def _remove_leaf_from_parent(self, node: Any) -> None:
        above = self._id_above(node.id)
        super()._remove_leaf_from_parent(node)
        self.ranks.removed(node.id, above)
        self._creators.pop(node.id, None)

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
        decision = backup.decide(
            end - len(node.key),
            end,
            tagged=True,
            boundary=call.boundary,
            hit=self._creators.get(node.id) != call.id,
            storage=self.enable_storage,
        )
        if decision.action is not backup.Action.SKIP:
            return True
        self.ledger.not_backed_up(len(node.key))
        return False

    def has_only_full_attention(self) -> bool:
        """Whether FULL is the only component: prefixes can then be cut at any page."""
        return self.component_types == (ComponentType.FULL,)
