"""Learning an agent's fixed prefix from its prompts, where neither recipe nor tag tells it.

Source: paper section 3.3 (prompt segmentation), invariants 14, 16, 17, 38 and 39.

The fixed prefix of an agent is what its last few calls have in common. K prompts in a row have in
common the least of what each of them shares with the one before, so one prompt and K - 1 numbers
an agent are all that is kept. What follows from it:

- A call that begins otherwise shortens the prefix at once, to the shared part. What is longer is
  taken again when K calls in a row had it: an edited prompt is learned with its K-th call, and a
  suffix that K calls happened to share is given up by the next one that does not.
- Calls that are all alike have their whole prompt as the prefix.
- A prompt that goes on from the whole of the one before, as the next turn of a conversation does,
  shows nothing: what two conversations share is the fixed prefix, not what one of them has said so
  far. Of an agent with a single conversation nothing is known; `kvflow.memory` is for those.
- Of a name that stands for several prompts, only what all of them share is ever found. Where that
  is less than `least_tokens`, as when only the chat template's start is shared, nothing is known:
  such calls are treated as SGLang treats them.
"""

from array import array
from collections import OrderedDict, deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

PROMPT_END = 8
"""Tokens at the end of a prompt that the next turn of a conversation need not have.

Chat templates end a prompt with words for the model to go on from. Those of reasoning models open
or close its thoughts there, and drop that when the answer has become history.
"""

_FIRST_STEP = 256
_LONGEST_STEP = 8192


class Identity(NamedTuple):
    """Whose prefix it is: calls that differ in any of these never share KV.

    Attributes:
        client: the application.
        agent: by the client's name for it.
        cache_salt: as the request carries it.
        extra_key: SGLang's own namespace of KV; it has the LoRA adapter in it.
    """

    client: str
    agent: str
    cache_salt: str | None = None
    extra_key: str | None = None


@dataclass(frozen=True, slots=True)
class Limits:
    """What is believed, and what bounds memory (invariant 39).

    Attributes:
        calls: K, so many calls in a row must share a prefix; at least 2.
        least_tokens: a shorter prefix is not worth keeping, and may be no more than what the chat
            template puts before any prompt.
        identities: most agents that are known; the one that was quiet for longest goes.
        tokens: most tokens of their last prompts in all, 8 bytes each; the same one goes. The
            agent that spoke last is kept whatever its prompt.
        silent_ticks: ticks without a call after which an agent is forgotten. Ticks are seconds
            while runs are live.
    """

    calls: int = 3
    least_tokens: int = 64
    identities: int = 1024
    tokens: int = 1 << 22
    silent_ticks: int = 3600


@dataclass(slots=True)
class _Heard:
    last: "array[int]"
    shared: deque[int]  # what the latest prompts shared, each with the one before it
    tick: int


class PrefixLearner:
    """The fixed prefixes of all agents, as far as their calls have shown them.

    A pure function of the calls and ticks it is told of, in their order: every rank that hears the
    same learns the same.

    Args:
        page_size: tokens a page; prefixes are rounded down to whole pages.
        limits: what is believed and kept.
    """

    def __init__(self, page_size: int, limits: Limits | None = None) -> None:
        self.limits = limits or Limits()
        self._page_size = page_size
        self._heard: OrderedDict[Identity, _Heard] = OrderedDict()  # quiet for longest first
        self._tokens = 0
        self._tick = 0

    def __len__(self) -> int:
        """How many agents are known."""
        return len(self._heard)

    @property
    def tokens(self) -> int:
        """Tokens of prompts that are kept."""
        return self._tokens

    def observe(self, identity: Identity, token_ids: Sequence[int]) -> int | None:
        """A call is here. O(what its prompt shares with the one before), and a copy of it.

        Args:
            identity: whose call.
            token_ids: its prompt.

        Returns:
            Tokens of its prompt that are its agent's fixed prefix, whole pages; None while that is
            not known.
        """
        prompt = array("q", token_ids)
        heard = self._heard.get(identity)
        if heard is None:
            shared = 0
            heard = _Heard(prompt, deque(maxlen=self.limits.calls - 1), self._tick)
        else:
            shared = common_length(heard.last, prompt)
            if not _is_next_turn(heard.last, prompt, shared):
                heard.shared.append(shared)
            self._drop(identity)
            heard.last, heard.tick = prompt, self._tick
        self._heard[identity] = heard
        self._tokens += len(prompt)
        self._bound()
        return self._prefix(heard, shared)

    def tick(self) -> None:
        """Time passes: agents that were silent for too long are forgotten. O(those)."""
        self._tick += 1
        horizon = self._tick - self.limits.silent_ticks
        while self._heard:
            oldest = next(iter(self._heard))
            if self._heard[oldest].tick > horizon:
                break
            self._drop(oldest)

    def _prefix(self, heard: _Heard, shared: int) -> int | None:
        if len(heard.shared) < self.limits.calls - 1:
            return None
        tokens = min(shared, *heard.shared) // self._page_size * self._page_size
        return tokens if tokens >= max(self.limits.least_tokens, 1) else None

    def _bound(self) -> None:
        most = self.limits
        while len(self._heard) > 1 and (
            len(self._heard) > most.identities or self._tokens > most.tokens
        ):
            self._drop(next(iter(self._heard)))

    def _drop(self, identity: Identity) -> None:
        self._tokens -= len(self._heard.pop(identity).last)


def _is_next_turn(last: "array[int]", prompt: "array[int]", shared: int) -> bool:
    # What is added must be more than an end that differs: short suffixes are no turns.
    return shared >= len(last) - PROMPT_END and len(prompt) > len(last) + PROMPT_END


def common_length(one: "array[int]", other: "array[int]") -> int:
    """How many items two arrays of the same type begin with alike. O(that many).

    Arrays compare slices some hundred times faster than a loop compares items: equal slices of
    growing length are skipped, and the first difference is halved in on.
    """
    length, step = min(len(one), len(other)), _FIRST_STEP
    alike = 0
    while alike < length:
        end = min(alike + step, length)
        if one[alike:end] != other[alike:end]:
            return _first_difference(one, other, alike, end)
        alike = end
        step = min(2 * step, _LONGEST_STEP)
    return length


def _first_difference(one: "array[int]", other: "array[int]", begin: int, end: int) -> int:
    """Where two arrays differ first, which is known to be from `begin` on and before `end`."""
    while end - begin > 1:
        middle = (begin + end) // 2
        if one[begin:middle] == other[begin:middle]:
            begin = middle
        else:
            end = middle
    return begin
