import re
import socket
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from typing import Any

import pytest
from support.fake_server import ANSWER, FIRST_ID, FakeServer, to_ids

from kvflow.client import tag
from kvflow.client.exchange import Answer, ChatPrompt, IdsPrompt, Message
from kvflow.client.http import NonsenseError, RefusedError, TimedOutError
from kvflow.client.server import Server, connect
from kvflow.errors import KvflowError, NotAuthorised, ServerUnreachable, UsageError

CHAT = ChatPrompt((Message("system", "You are a planner."), Message("user", "Plan it.")))
IDS = IdsPrompt(tuple(range(100, 140)))
TAG = tag("app", "peer", "r1", "planner")


@asynccontextmanager
async def reached(fake: FakeServer, **options: Any) -> AsyncIterator[Server]:
    with fake.running():
        async with connect(fake.url, **options) as server:
            yield server


async def ask(server: Server, prompt: ChatPrompt | IdsPrompt = CHAT, **options: Any) -> Answer:
    return await server.ask(prompt, **{"max_tokens": 50, "what": "call 0.3 (planner)", **options})


def unused_url() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{probe.getsockname()[1]}"


async def test_connect_to_sglang_finds_its_kind_model_and_version() -> None:
    async with reached(FakeServer()) as server:
        assert server.info.kind == "sglang"
        assert (server.info.model, server.info.version) == ("fake-model", "0.5.23")


async def test_connect_to_another_server_finds_an_openai_one() -> None:
    async with reached(FakeServer("openai")) as server:
        assert (server.info.kind, server.info.version) == ("openai", None)


@pytest.mark.parametrize("shape", ["{url}/v1", "{url}/", "{bare}", "{url}/v1/"])
async def test_connect_takes_a_url_as_people_write_it(shape: str) -> None:
    fake = FakeServer()
    with fake.running():
        url = shape.format(url=fake.url, bare=fake.url.removeprefix("http://"))
        async with connect(url) as server:
            assert server.info.url == fake.url


@pytest.mark.parametrize("url", ["ftp://127.0.0.1:1", "http://", "http://127.0.0.1:port"])
async def test_connect_to_what_is_no_url_is_a_usage_error(url: str) -> None:
    with pytest.raises(UsageError):
        async with connect(url):
            pass


async def test_connect_where_nothing_listens_says_so_with_a_hint() -> None:
    url = unused_url()
    with pytest.raises(ServerUnreachable) as failure:
        async with connect(url):
            pass
    assert f"cannot reach {url}" in failure.value.what
    assert failure.value.why == "Connection refused"
    assert "kvflow serve" in failure.value.hint


@pytest.mark.parametrize(
    "fake", [FakeServer("website"), FakeServer(models=())], ids=["website", "no model"]
)
async def test_connect_to_a_server_of_something_else_says_so(fake: FakeServer) -> None:
    with pytest.raises(ServerUnreachable, match="not a server of language models"):
        async with reached(fake):
            pass


async def test_connect_to_a_listener_that_never_answers_times_out() -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        with pytest.raises(TimedOutError, match="no answer"):
            async with connect(url, timeout_s=0.2):
                pass


@pytest.mark.parametrize("key", [None, "wrong-key"])
async def test_connect_without_the_right_key_is_not_authorised_and_hides_the_key(
    key: str | None,
) -> None:
    with pytest.raises(NotAuthorised) as failure:
        async with reached(FakeServer(api_key="right-key"), api_key=key):
            pass
    assert "401" in failure.value.what
    assert "wrong-key" not in str(failure.value)


async def test_connect_with_the_right_key_sends_it_with_every_call() -> None:
    fake = FakeServer(api_key="right-key")
    async with reached(fake, api_key="right-key") as server:
        await ask(server)
    assert fake.seen[0].authorization == "Bearer right-key"


@pytest.mark.parametrize("prompt", [CHAT, IDS], ids=["chat", "ids"])
async def test_ask_sglang_gives_the_answer_in_text_and_ids(prompt: ChatPrompt | IdsPrompt) -> None:
    async with reached(FakeServer()) as server:
        answer = await ask(server, prompt)
    assert answer.text == ANSWER
    assert answer.output_ids == tuple(to_ids(ANSWER))
    assert answer.output_tokens == len(ANSWER)
    assert answer.finish_reason == "stop"


async def test_ask_sglang_that_streams_only_what_is_new_gives_the_whole_answer() -> None:
    async with reached(FakeServer(incremental=True)) as server:
        answer = await ask(server, IDS)
    assert (answer.text, answer.output_ids) == (ANSWER, tuple(to_ids(ANSWER)))


@pytest.mark.parametrize("prompt", [CHAT, IDS], ids=["chat", "ids"])
async def test_ask_sglang_tells_cached_tokens_by_tier(prompt: ChatPrompt | IdsPrompt) -> None:
    async with reached(FakeServer(host_tokens=7)) as server:
        first, second = await ask(server, prompt), await ask(server, prompt)
    assert (first.cached_tokens, first.cached_device, first.cached_host) == (0, 0, 0)
    assert second.prompt_tokens is not None
    assert second.cached_tokens == second.prompt_tokens
    assert (second.cached_device, second.cached_host) == (second.prompt_tokens - 7, 7)


async def test_ask_another_server_tells_cached_tokens_without_tiers() -> None:
    async with reached(FakeServer("openai")) as server:
        await ask(server)
        answer = await ask(server)
    assert answer.cached_tokens == answer.prompt_tokens
    assert answer.cached_device is answer.cached_host is answer.output_ids is None


@pytest.mark.parametrize("prompt", [CHAT, IDS], ids=["chat", "ids"])
async def test_ask_sglang_sends_the_tag(prompt: ChatPrompt | IdsPrompt) -> None:
    fake = FakeServer()
    async with reached(fake) as server:
        await ask(server, prompt, tag=TAG)
    assert fake.seen[0].params == TAG


async def test_ask_another_server_sends_nothing_but_openai_fields() -> None:
    fake = FakeServer("openai")
    async with reached(fake) as server:
        await ask(server, tag=TAG)
    assert set(fake.seen[0].body) == {
        "model", "messages", "max_tokens", "temperature", "stream", "stream_options"
    }  # fmt: skip


@pytest.mark.parametrize("prompt", [CHAT, IDS], ids=["chat", "ids"])
async def test_ask_exactly_goes_on_to_max_tokens(prompt: ChatPrompt | IdsPrompt) -> None:
    async with reached(FakeServer()) as server:
        answer = await ask(server, prompt, exact=True)
    assert (answer.output_tokens, answer.finish_reason) == (50, "length")


@pytest.mark.parametrize("prompt", [CHAT, IDS], ids=["chat", "ids"])
async def test_ask_times_the_first_token_and_the_end_by_the_clock(
    prompt: ChatPrompt | IdsPrompt,
) -> None:
    now = 0.0

    def clock() -> float:
        return now

    def first_token() -> None:
        nonlocal now
        now = 5.0  # what comes after the first token

    async with reached(FakeServer(), clock=clock) as server:
        answer = await ask(server, prompt, on_first_token=first_token)
    assert (answer.ttft_s, answer.latency_s) == (0.0, 5.0)


@pytest.mark.parametrize(
    ("dialect", "options"), [("sglang", {}), ("openai", {})], ids=["sglang", "openai"]
)
async def test_ask_first_token_comes_once(dialect: str, options: dict[str, Any]) -> None:
    times = []
    async with reached(FakeServer(dialect)) as server:
        await ask(server, on_first_token=lambda: times.append(1), **options)
    assert times == [1]


@pytest.mark.parametrize("options", [{"prompt": IDS}, {"exact": True}], ids=["ids", "exact"])
async def test_ask_another_server_for_what_only_sglang_has_is_refused(
    options: dict[str, Any],
) -> None:
    fake = FakeServer("openai")
    async with reached(fake) as server:
        with pytest.raises(UsageError, match=r"call 0\.3 \(planner\).*not an SGLang server"):
            await ask(server, **options)
    assert fake.seen == []


FAULTS: list[tuple[int | str, type[KvflowError], str]] = [
    (500, RefusedError, "HTTP 500"),
    (400, RefusedError, "HTTP 400"),
    (401, NotAuthorised, "HTTP 401"),
    (403, NotAuthorised, "HTTP 403"),
    ("garbage", NonsenseError, "not JSON"),
    ("lacking", NonsenseError, "missing required field"),
    ("html", NonsenseError, "text/html"),
    ("cut", NonsenseError, "broke off"),
    ("endless", NonsenseError, r"without \[DONE\]"),
    ("drop", NonsenseError, "broke off"),
    ("error", RefusedError, "no memory"),
]


@pytest.mark.parametrize("prompt", [CHAT, IDS], ids=["chat", "ids"])
@pytest.mark.parametrize(("fault", "kind", "words"), FAULTS, ids=[str(f[0]) for f in FAULTS])
async def test_ask_a_server_at_fault_names_the_call_and_why(
    prompt: ChatPrompt | IdsPrompt, fault: int | str, kind: type[KvflowError], words: str
) -> None:
    async with reached(FakeServer(fault=lambda seen: fault)) as server:
        with pytest.raises(kind, match=r"call 0\.3 \(planner\)") as failure:
            await ask(server, prompt)
    assert re.search(words, str(failure.value))


async def test_ask_sglang_that_aborts_the_call_is_refused() -> None:
    async with reached(FakeServer(fault=lambda seen: "abort")) as server:
        with pytest.raises(RefusedError, match="aborted"):
            await ask(server, IDS)


async def test_ask_a_server_that_hangs_times_out() -> None:
    fake = FakeServer(fault=lambda seen: "hang")
    async with reached(fake, timeout_s=2.0) as server:
        with pytest.raises(TimedOutError, match=r"call 0\.3 \(planner\).*within 2 s"):
            await ask(server)


async def test_ask_a_server_that_has_gone_is_unreachable() -> None:
    fake = FakeServer()
    with ExitStack() as until_it_goes:
        until_it_goes.enter_context(fake.running())
        async with connect(fake.url) as server:
            until_it_goes.close()
            with pytest.raises(ServerUnreachable, match=r"call 0\.3 \(planner\)"):
                await ask(server)


async def test_tokenize_and_detokenize_are_each_others_inverse() -> None:
    async with reached(FakeServer()) as server:
        ids = await server.tokenize("a plan: ü")
        assert ids == to_ids("a plan: ü")
        assert await server.detokenize(ids) == "a plan: ü"


async def test_vocabulary_holds_ordinary_ids_and_no_control_tokens() -> None:
    async with reached(FakeServer()) as server:
        vocabulary = await server.vocabulary()
    assert vocabulary.start >= FIRST_ID
    assert set(to_ids("The answer, then")) <= set(vocabulary)
