"""What goes to a server and what comes back, whatever the server speaks."""

from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple


class Message(NamedTuple):
    """One turn of a chat."""

    role: str  # system, user or assistant
    content: str


@dataclass(frozen=True, slots=True)
class ChatPrompt:
    """A prompt in messages; the server renders it through its chat template."""

    messages: tuple[Message, ...]


@dataclass(frozen=True, slots=True)
class IdsPrompt:
    """A prompt in token ids, as SGLang's /generate takes it."""

    ids: tuple[int, ...]


Prompt = ChatPrompt | IdsPrompt


@dataclass(frozen=True, slots=True)
class Answer:
    """The server's answer to one call, and what it took. None: the server does not say.

    Attributes:
        text: what was generated; without a reasoning model's thoughts.
        output_ids: the same in token ids.
        finish_reason: as the server names it; "length" when max_tokens was reached.
        ttft_s: seconds from sending the request to the first generated token.
        latency_s: seconds from sending the request to the end of the answer.
        prompt_tokens: length of the prompt.
        output_tokens: length of the answer.
        cached_tokens: of the prompt, found in a cache of any tier.
        cached_device: of these, found in device memory.
        cached_host: of these, loaded from host memory.
        token_times_s: when each further token came, in seconds after the first one; tokens that
            came together count once.
    """

    text: str
    output_ids: tuple[int, ...] | None
    finish_reason: str
    ttft_s: float
    latency_s: float
    prompt_tokens: int | None
    output_tokens: int | None
    cached_tokens: int | None
    cached_device: int | None
    cached_host: int | None
    token_times_s: tuple[float, ...] = ()

    @property
    def itl_s(self) -> list[float]:
        """Seconds from each token to the next; none of an answer that came in one piece."""
        return [after - before for before, after in pairwise((0.0, *self.token_times_s))]
