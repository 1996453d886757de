"""The part of a prompt that differs from call to call."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from kvflow.client.server import Server
from kvflow.workload import Call, filler_ids, filler_text

# Roughly a token each, for servers that do not say what a token is.
_PIECE = re.compile(r"\w{1,6}|[^\w\s]")


class Heard(NamedTuple):
    """What a predecessor said."""

    agent: str
    text: str


class DynamicPart:
    """Makes the dynamic part of calls: what the predecessors said, or filler.

    Args:
        server: counts the tokens where it can (SGLang); others are cut by pieces of words.
        vocabulary: token ids to draw filler from; may be empty if no agent speaks in token ids.
        seed: of the workload.
        filler: None: what the predecessors said, and a seeded task for a call without any. A text:
            seeded filler of the exact length instead; another text gives other filler, so that
            arms of a bench on one server do not find each other's prompts in the cache.
    """

    def __init__(self, server: Server, vocabulary: range, seed: int, filler: str | None) -> None:
        self._server, self._vocabulary = server, vocabulary
        self._seed, self._filler = seed, filler

    def is_known_ahead(self, call: Call) -> bool:
        """Whether the part can be made before the predecessors of the call have spoken."""
        return self._filler is not None or not call.predecessors

    async def text(self, call: Call, heard: Sequence[Heard]) -> str:
        """The part as text, of at most `call.dynamic_tokens` tokens."""
        text, most = self._source(call, heard), call.dynamic_tokens
        if len(text.encode()) <= most:  # a token is at least a byte
            return text
        if not self._server.is_sglang:
            return cut_pieces(text, most)
        ids = await self._server.tokenize(text)
        if len(ids) <= most:
            return text
        cut = await self._server.detokenize(ids[:most])
        return cut.rstrip("\ufffd")  # half a character at the cut

    async def ids(self, call: Call, heard: Sequence[Heard]) -> list[int]:
        """The part as token ids, at most `call.dynamic_tokens` of them (SGLang only)."""
        if self._filler is not None:
            return filler_ids(call.dynamic_tokens, self._vocabulary, *self._key(call))
        ids = await self._server.tokenize(self._source(call, heard))
        return ids[: call.dynamic_tokens]

    def _source(self, call: Call, heard: Sequence[Heard]) -> str:
        if self._filler is not None or not heard:
            return filler_text(call.dynamic_tokens, *self._key(call))
        return "\n\n".join(f"{agent}: {text}" for agent, text in heard)

    def _key(self, call: Call) -> tuple[str | int, ...]:
        arm = self._filler or ""
        return ("filler", arm, self._seed, call.run, call.agent, call.activation, call.part)


def cut_pieces(text: str, most: int) -> str:
    """The beginning of a text, of about so many tokens: words of six letters, or signs."""
    end = 0
    for count, piece in enumerate(_PIECE.finditer(text)):
        if count == most:
            break
        end = piece.end()
    return text[:end]
