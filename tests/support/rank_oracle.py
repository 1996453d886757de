"""What nodes are worth, worked out a second way: from what happened to pages of tokens.

kvflow keeps counts, marks and spent flags on nodes, and moves them when nodes split and vanish.
Here every page of tokens is known by the tokens up to its end, whatever nodes hold it, and a rank
is computed when it is asked for by looking at all marks.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from support.real_cache import tokens_to

Page = int
Rank = tuple[int, int, float, int]
Owner = tuple[str, str, str | None]
"""(client, agent, extra key): of a fixed prefix. A conversation's is its `Tail`."""


@dataclass(frozen=True)
class Tagged:
    """A tagged call in flight: who speaks, and where its fixed prefix ends (None: unknown)."""

    client: str
    agent: str
    boundary: int | None
    tail: Any = None
    converses: bool = False


class RankOracle:
    """Ranks of the nodes of a kvflow cache, told of what happens to it.

    Args:
        cache: whose modes, nodes and runs are looked at.
    """

    def __init__(self, cache: Any) -> None:
        self._cache = cache
        self._page_size = cache.page_size
        self._ends: dict[int, Page] = {}  # last page of a node: splits leave it where it is
        self.calls: dict[str, Tagged] = {}
        self.forget_tree()

    def forget_tree(self) -> None:
        self.creators: dict[Page, Any] = {}
        self.spent: set[Page] = set()
        self.marks: dict[Any, list[Page]] = {}

    # What happens

    def arrived(self, req: Any) -> None:
        tag = (req.sampling_params.custom_params or {}).get("kvflow")
        if tag is None or req.rid in self.calls:
            return
        fixed = tag.get("fixed_tokens")
        if fixed is not None:
            fixed = min(fixed, len(req.origin_input_ids)) // self._page_size * self._page_size
        self.calls[req.rid] = Tagged(tag["client"], tag["agent"], fixed)

    def admitted(self, req: Any) -> None:
        """Called after the cache has heard of it. What is learned has oracles of its own."""
        call, known = self.calls.get(req.rid), self._cache.calls.get(req.rid)
        if call is not None and known is not None:
            boundary = known.boundary if call.boundary is None else call.boundary
            talks = known.converses
            self.calls[req.rid] = replace(call, boundary=boundary, tail=known.tail, converses=talks)

    def matched(self, rid: str, node_id: int) -> None:
        author = self._author(rid)
        for page in self._pages_to(self._cache.tree_core.node_by_id(node_id)):
            if self.creators[page] != author:
                self.creators[page] = None
                self.spent.discard(page)

    def inserted(self, req: Any, inserted_before: int, up_to: int) -> None:
        length = up_to // self._page_size * self._page_size
        pages = self.pages(req.full_untruncated_fill_ids[:length], req.extra_key)
        call = self.calls.get(req.rid)
        for page in pages:
            self.creators.setdefault(page, self._author(req.rid) if call else None)
        if call is None or call.boundary is None or self._cache.mode == "off":
            return
        if inserted_before < call.boundary <= length:
            owner = (call.client, call.agent, req.extra_key)
            self.marks[owner] = pages[: call.boundary // self._page_size]

    def removed(self, node: Any) -> None:
        path = self._pages_to(node)
        above = path[: -(len(node.key) // self._page_size)]
        for page in path[len(above) :]:
            del self.creators[page]
            self.spent.discard(page)
        for owner, marked in list(self.marks.items()):
            if marked[-1] == path[-1]:
                self.marks[owner] = above
                if not above:
                    del self.marks[owner]

    def finished(self, req: Any, aborted: bool) -> None:
        """Called before the cache hears of it."""
        call = self.calls.pop(req.rid, None)
        if call is None:
            return
        if call.converses:
            if aborted:
                self._let_go(call.tail, req.last_node)
            else:
                self._go_on(call.tail, req.last_node)
            return
        node = self._cache.tree_core.node_by_id(req.last_node)
        while node is not self._cache.tree_core.root_node:
            path = self._pages_to(node)
            start = len(path) * self._page_size - len(node.key)
            own = self.creators[path[-1]] == req.rid
            beyond = not aborted and call.boundary is not None and start >= call.boundary
            for page in path[start // self._page_size :] if own else []:
                self.creators[page] = None
                if beyond:
                    self.spent.add(page)
            node = node.parent
        self._spend_what_is_left(self.marks.pop(call.tail, []), call.tail)

    def run_ended(self, client: str, run: str) -> None:
        for owner in [o for o in self.marks if len(o) > 3 and (o[0], o[5]) == (client, run)]:
            self._spend_what_is_left(self.marks.pop(owner), owner)

    def _go_on(self, tail: Any, node_id: int) -> None:
        before = self.marks.pop(tail, [])
        if pages := self._pages_to(self._cache.tree_core.node_by_id(node_id)):
            self.marks[tail] = pages
        self._spend_what_is_left(before, tail)

    def _let_go(self, tail: Any, node_id: int) -> None:
        for page in self._pages_to(self._cache.tree_core.node_by_id(node_id)):
            marked = any(page in path for path in self.marks.values())
            if self.creators[page] == tail and not marked:
                self.creators[page] = None

    def _spend_what_is_left(self, pages: list[Page], tail: Any) -> None:
        for page in pages:
            marked = any(page in path for path in self.marks.values())
            if self.creators[page] == tail and not marked:
                self.creators[page] = None
                self.spent.add(page)

    def _author(self, rid: str) -> Any:
        call = self.calls.get(rid)
        return call.tail if call is not None and call.converses else rid

    # What follows

    def steps(self, node: Any) -> int | None:
        """The least steps of the marks at or below the node; None without any."""
        end = self._end(node)
        owners = [owner for owner, path in self.marks.items() if end in path]
        live = [self._live_steps(owner) for owner in owners]
        idle = [self._cache.untagged_steps] if owners else []
        return min([steps for steps in live if steps is not None] or idle, default=None)

    def _live_steps(self, owner: Any) -> int | None:
        """Of an agent the least over its runs; of a conversation those of its own run."""
        table = self._cache.calls.table
        if len(owner) == 3:
            return table.least(owner[0], owner[1])
        own = [run for run in table.runs() if run[:3] == (owner.client, owner.workflow, owner.run)]
        return min(
            (run.steps[owner.agent] for run in own if owner.agent in run.steps), default=None
        )

    def is_untagged(self, node: Any) -> bool:
        """Whether nothing is known of the node, and no call in flight made it."""
        end = self._end(node)
        is_nobodys = end not in self.spent and self.creators.get(end) is None
        return self.steps(node) is None and is_nobodys

    def rank(self, node: Any) -> Rank:
        if self._cache.mode == "off":
            return 1, 0, node.last_access_time, node.id
        steps = self.steps(node)
        spent = steps is None and self._end(node) in self.spent
        worth = self._cache.untagged_steps if steps is None else steps
        return 0 if spent else 1, -worth, node.last_access_time, node.id

    def pages(self, token_ids: Sequence[int], extra_key: str | None) -> list[Page]:
        """Whole pages of a sequence, each known by all that stands before its end."""
        found: list[Page] = []
        page = hash(extra_key)
        for start in range(0, len(token_ids) - self._page_size + 1, self._page_size):
            page = hash((page, tuple(token_ids[start : start + self._page_size])))
            found.append(page)
        return found

    def _pages_to(self, node: Any) -> list[Page]:
        return self.pages(tokens_to(node), node.key.extra_key)

    def _end(self, node: Any) -> Page:
        if node.id not in self._ends:
            self._ends[node.id] = self._pages_to(node)[-1]
        return self._ends[node.id]
