"""One server, as a client sees it: what it is, and how to ask it."""

import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Literal, NamedTuple

from kvflow.client.ending import end_run
from kvflow.client.exchange import Answer, ChatPrompt, IdsPrompt, Prompt
from kvflow.client.http import Http, NonsenseError, RefusedError
from kvflow.client.stream import ChatReader, Clock, GenerateReader, Reader
from kvflow.client.tagging import CustomParams
from kvflow.client.wire import Models, ServerInfoReply, Text, Tokens, read
from kvflow.errors import ServerUnreachable, UsageError

# Text whose tokens show which ids are ordinary: control tokens sit at either end of a vocabulary.
_ORDINARY = (
    "Plan the work, then check the answer: 1234567890 items, each with a name and a place. "
    "The quick brown fox jumps over the lazy dog; international understanding grows slowly."
)


class ServerInfo(NamedTuple):
    """What answers at a URL.

    `kind` is sglang if the server has SGLang's own API, else openai: any server with
    /v1/chat/completions.
    """

    url: str
    kind: Literal["sglang", "openai"]
    model: str
    version: str | None  # of SGLang

    @property
    def label(self) -> str:
        """What it is, in words."""
        software = f"SGLang {self.version}" if self.kind == "sglang" else "OpenAI-compatible"
        return f"{software}, {self.model}"


class Server:
    """A server that has been reached. `connect` makes one.

    Requests to an SGLang server carry tags and ask for cached tokens by tier; other servers get
    nothing that OpenAI's API does not have. Nothing is ever retried: it would hide latency.

    Safe to use by many tasks at once on one event loop.
    """

    def __init__(self, http: Http, info: ServerInfo, clock: Clock) -> None:
        self._http, self.info, self._clock = http, info, clock
        self._may_have_kvflow = info.kind == "sglang"

    @property
    def is_sglang(self) -> bool:
        """Whether the server has SGLang's own API."""
        return self.info.kind == "sglang"

    async def ask(
        self,
        prompt: Prompt,
        *,
        max_tokens: int,
        what: str,
        tag: CustomParams | None = None,
        exact: bool = False,
        on_first_token: Callable[[], None] = lambda: None,
    ) -> Answer:
        """Make one call, streamed and greedy, and wait for the whole answer.

        Args:
            prompt: messages go through the server's chat template; ids need SGLang.
            max_tokens: most tokens of the answer.
            what: names the call in errors.
            tag: from `kvflow.client.tag`.
            exact: go on to max_tokens whatever the model says; needs SGLang.
            on_first_token: called when the first token arrives.

        Raises:
            UsageError: the server lacks what the call needs.
            ServerUnreachable, NotAuthorised, TimedOutError, RefusedError, NonsenseError: each
                names `what`.
        """
        if (exact or isinstance(prompt, IdsPrompt)) and not self.is_sglang:
            raise UsageError(
                f"{what}: {self.info.url} is not an SGLang server",
                "prompts in token ids and exact output lengths need SGLang's own API",
                "give the URL of an SGLang server, or give the agent a prompt file",
            )
        if isinstance(prompt, IdsPrompt):
            path, body = "/generate", _generate_body(prompt, max_tokens, exact, tag)
        else:
            path, body = "/v1/chat/completions", self._chat_body(prompt, max_tokens, exact, tag)
        reader = self._reader(prompt, what, on_first_token)
        await self._http.stream(path, body, what, reader.take)
        return reader.answer()

    async def end_run(self, client: str, run: str, expect_next: bool) -> None:
        """Say that a run is over, and whether its client begins another in its place.

        Without it a run that stops half way, and the next run of a workflow with `repeat`, are
        expected for minutes. A server without kvflow expects nothing, and is asked only once.

        Raises:
            ServerUnreachable, NotAuthorised, TimedOutError, RefusedError, NonsenseError: it could
                not be said this time; the next run is told of all the same.
        """
        if self._may_have_kvflow:
            self._may_have_kvflow = await end_run(self._http, client, run, expect_next)

    async def tokenize(self, text: str) -> list[int]:
        """The token ids of a text, without control tokens (SGLang only)."""
        body = {"prompt": text, "add_special_tokens": False}
        reply = await self._http.post("/tokenize", body, "tokenizing")
        return read(Tokens, reply, "tokenizing").tokens

    async def detokenize(self, ids: list[int]) -> str:
        """The text of token ids (SGLang only)."""
        reply = await self._http.post("/detokenize", {"tokens": ids}, "detokenizing")
        return read(Text, reply, "detokenizing").text

    async def vocabulary(self) -> range:
        """Token ids that stand for ordinary text, to draw filler from (SGLang only)."""
        ids = await self.tokenize(_ORDINARY)
        if not ids:
            raise NonsenseError("tokenizing: an ordinary sentence has no tokens")
        return range(min(ids), max(ids) + 1)

    def _reader(self, prompt: Prompt, what: str, on_first_token: Callable[[], None]) -> Reader:
        if isinstance(prompt, IdsPrompt):
            return GenerateReader(what, self._clock, on_first_token)
        return ChatReader(what, self._clock, on_first_token, self.is_sglang)

    def _chat_body(
        self, prompt: ChatPrompt, max_tokens: int, exact: bool, tag: CustomParams | None
    ) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": self.info.model,
            "messages": [message._asdict() for message in prompt.messages],
            "max_tokens": max_tokens,
            "temperature": 0,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        if self.is_sglang:
            body |= {
                "ignore_eos": exact,
                "custom_params": tag,
                "return_cached_tokens_details": True,
                # Also makes SGLang send its extra fields when nothing was cached.
                "return_output_ids_in_sglext": True,
            }
        return body


@asynccontextmanager
async def connect(
    url: str,
    *,
    api_key: str | None = None,
    timeout_s: float = 600.0,
    clock: Clock = time.perf_counter,
) -> AsyncIterator[Server]:
    """Reach a server and find out what it is.

    Args:
        url: base URL; a trailing /v1 is allowed.
        api_key: sent as a bearer token.
        timeout_s: seconds that one call may take in all.
        clock: seconds, for measuring calls.

    Raises:
        UsageError: no URL.
        ServerUnreachable: nothing answers, or nothing that serves a model.
        NotAuthorised: the server wants another key.
        TimedOutError: it is there and does not answer.
    """
    async with Http(url, api_key, timeout_s) as http:
        model = await _served_model(http)
        version = await _sglang_version(http)
        kind: Literal["sglang", "openai"] = "openai" if version is None else "sglang"
        yield Server(http, ServerInfo(http.url, kind, model, version), clock)


async def _served_model(http: Http) -> str:
    try:
        models = read(Models, await http.get("/v1/models", "connecting"), "connecting").data
    except (RefusedError, NonsenseError) as error:
        raise _no_model_server(http.url, error.why) from error
    if not models:
        raise _no_model_server(http.url, "/v1/models lists no model")
    return models[0].id


def _no_model_server(url: str, why: str) -> ServerUnreachable:
    return ServerUnreachable(
        f"{url} is not a server of language models",
        why,
        "give the URL of an SGLang or OpenAI-compatible server",
    )


async def _sglang_version(http: Http) -> str | None:
    try:
        reply = await http.get("/server_info", "connecting")
        return read(ServerInfoReply, reply, "connecting").version
    except (RefusedError, NonsenseError):
        return None


def _generate_body(
    prompt: IdsPrompt, max_tokens: int, exact: bool, tag: CustomParams | None
) -> dict[str, Any]:
    return {
        "input_ids": list(prompt.ids),
        "stream": True,
        "sampling_params": {
            "max_new_tokens": max_tokens,
            "temperature": 0,
            "ignore_eos": exact,
            "custom_params": tag,
        },
    }
