"""Evictions that a later call regrets: it asks for what is gone.

No token ids are kept, only digests of paths. A false regret would need two different prompts with
one digest, and that is excluded for all purposes: a digest is 128 bits of keyed BLAKE2b over the
namespace and over every token id from the root to the node's end, not over the node's own tokens
alone; the length must be equal too; and the key is drawn at start, so that nobody can prepare two
that collide (by chance: one in 10^32 for each comparison). What comes before that, a short hash of
two of the last tokens, only saves work and never decides. Digests leave the process in no frame,
metric or log.
"""

import os
from array import array
from collections import Counter, deque
from collections.abc import Sequence
from hashlib import blake2b
from typing import Any, Literal, NamedTuple

Tier = Literal["device", "host"]
Namespace = tuple[str | None, str | None]
"""(extra key, cache salt): prompts of two namespaces never share KV."""

_TAIL = 4  # tokens, of which the short hash takes the first and the last
_TOKEN_BYTES = 8


class Path(NamedTuple):
    """What identifies the path from the root to the end of a node."""

    length: int  # in tokens
    tail: int
    digest: bytes


class _Watched(NamedTuple):
    path: Path
    tier: Tier
    seq: int


class Regrets:
    """The latest evicted paths, until somebody asks for them.

    Hashing costs each token of an evicted path once, not once an eviction: the state of the hash is
    kept for the nodes above it while they stand.

    Args:
        most: paths that are remembered.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._key = os.urandom(16)
        self._seed = int.from_bytes(os.urandom(8))
        self._states: dict[int, Any] = {}  # hashes of the paths to nodes in the tree
        self._latest: deque[_Watched] = deque()
        self._seqs: dict[Path, dict[Tier, int]] = {}
        self._tails: dict[int, Counter[int]] = {}  # paths by tail, by length

    def path(self, node: Any) -> Path | None:
        """The path to a node that is still in the tree; None for pairs of tokens (EAGLE)."""
        if node.key.is_bigram:
            return None
        ids, length = array("q", node.key.raw_token_ids()), len(node.key)
        above = node.parent
        while above.parent is not None:
            length += len(above.key)
            above = above.parent
        state = self._state(node.parent, (node.key.extra_key, node.key.cache_salt)).copy()
        state.update(ids.tobytes())
        tail = ids if len(ids) >= _TAIL else _last(node, _TAIL)
        return Path(length, self._tail(tail, len(tail)), state.digest())

    def removed(self, node: int) -> None:
        """A node left the tree."""
        self._states.pop(node, None)

    def forget_nodes(self) -> None:
        """The tree was emptied. What was evicted before can still be regretted."""
        self._states.clear()

    def evicted(self, seq: int, tier: Tier, path: Path | None) -> None:
        """An eviction with this number took what was at the end of this path from a tier."""
        if path is None:
            return
        if len(self._latest) >= self._most:
            self._drop(self._latest.popleft())
        self._latest.append(_Watched(path, tier, seq))
        if path not in self._seqs:
            self._seqs[path] = {}
            self._tails.setdefault(path.length, Counter())[path.tail] += 1
        self._seqs[path][tier] = seq

    def asked(
        self, prompt: Sequence[int], namespace: Namespace, device: int, cached: int
    ) -> list[int]:
        """A call asks for a prompt.

        Args:
            prompt: its token ids.
            namespace: of the call.
            device: tokens of it that were found on the device.
            cached: tokens that were found on the device or on the host.

        Returns:
            Numbers of the evictions that it regrets: of what it asks for and what is not there.
            Each once.
        """
        lengths = sorted(
            length
            for length, tails in self._tails.items()
            if device < length <= len(prompt) and self._tail(prompt, length) in tails
        )
        if not lengths:
            return []
        ids = array("q", prompt).tobytes()
        state, done, regretted = self._begin(namespace), 0, list[int]()
        for length in lengths:
            state.update(ids[done * _TOKEN_BYTES : length * _TOKEN_BYTES])
            done = length
            path = Path(length, self._tail(prompt, length), state.copy().digest())
            tiers = self._seqs.get(path, {})
            gone = [tier for tier in tiers if tier == "device" or cached < length]
            regretted += [tiers.pop(tier) for tier in gone]
        return regretted

    def _state(self, node: Any, namespace: Namespace) -> Any:
        """The hash up to the end of a node, kept for next time."""
        todo = []
        while node.parent is not None and node.id not in self._states:
            todo.append(node)
            node = node.parent
        state = self._states[node.id] if node.parent is not None else self._begin(namespace)
        for below in reversed(todo):
            state = state.copy()
            state.update(array("q", below.key.raw_token_ids()).tobytes())
            self._states[below.id] = state
        return state

    def _begin(self, namespace: Namespace) -> Any:
        state = blake2b(key=self._key, digest_size=16)
        for part in namespace:
            text = b"" if part is None else part.encode("utf-8", "surrogatepass")
            state.update(b"%d:" % (-1 if part is None else len(text)) + text)
        return state

    def _tail(self, ids: Sequence[int], length: int) -> int:
        return hash((self._seed, ids[max(0, length - _TAIL)], ids[length - 1]))

    def _drop(self, oldest: _Watched) -> None:
        path, tier, seq = oldest
        tiers = self._seqs.get(path)
        if tiers is None:
            return
        if tiers.get(tier) == seq:
            del tiers[tier]
        if not tiers:
            del self._seqs[path]
            _less(self._tails[path.length], path.tail)
            if not self._tails[path.length]:
                del self._tails[path.length]


def _last(node: Any, count: int) -> list[int]:
    """The last token ids of the path to a node."""
    found: list[int] = []
    while node.parent is not None and len(found) < count:
        found = [*list(node.key.raw_token_ids())[len(found) - count :], *found]
        node = node.parent
    return found


def _less(counter: Counter[Any], key: Any) -> None:
    counter[key] -= 1
    if not counter[key]:
        del counter[key]
