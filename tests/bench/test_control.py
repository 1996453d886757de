import msgspec
import pytest
from support.bench_server import BenchServer, _bench_routes, make_frame  # noqa: F401

from kvflow.bench import control
from kvflow.bench.control import difference, flat, steering
from kvflow.client.http import KEY_HINT
from kvflow.errors import KvflowError, NotAuthorised, ServerUnreachable


async def test_flush_is_asked_for_again_while_copies_are_in_flight():
    with BenchServer(busy=2).running() as fake:
        async with steering(fake.url) as steer:
            await steer.flush()
    assert (fake.busy, fake.steps) == (0, ["flush"])


async def test_flush_that_is_always_refused_says_that_the_server_is_in_use(monkeypatch):
    monkeypatch.setattr(control, "_FLUSH_TRIES", 2)
    monkeypatch.setattr(control, "_PAUSE_S", 0)
    with BenchServer(busy=9).running() as fake:
        async with steering(fake.url) as steer:
            with pytest.raises(KvflowError, match="cannot be emptied") as error:
                await steer.flush()
    assert "something else uses" in error.value.hint


async def test_mode_is_switched_and_asked_for():
    with BenchServer().running() as fake:
        async with steering(fake.url) as steer:
            before = await steer.mode()
            await steer.switch("full")
            assert (before, await steer.mode()) == ("off", "full")


async def test_mode_of_stock_sglang_is_none_and_so_are_its_counts_and_traffic():
    with BenchServer(mode=None).running() as fake:
        async with steering(fake.url) as steer:
            assert await steer.mode() is None
            assert await steer.counts() is None
            assert await steer.traffic() is None


async def test_mode_that_the_server_refuses_is_an_error_with_its_words():
    with BenchServer().running() as fake:
        async with steering(fake.url) as steer:
            with pytest.raises(KvflowError) as error:
                await steer.switch("broken")  # type: ignore[arg-type]
    assert "no mode 'broken'" in error.value.why


async def test_workflows_are_the_served_one_and_those_of_the_client_itself():
    known = ((None, "served"), ("bench", "own"), ("app", "foreign"))
    with BenchServer(workflows=known).running() as fake:
        async with steering(fake.url) as steer:
            assert await steer.workflows("bench") == {"served", "own"}


@pytest.mark.parametrize(
    ("url", "uses_proxy"),
    [("http://127.0.0.1:9", False), ("http://localhost:9", False), ("http://far.example", True)],
)
async def test_control_goes_through_the_environments_proxy_but_to_loopback(
    monkeypatch, url, uses_proxy
):
    made = []

    class Client(control.httpx2.AsyncClient):
        def __init__(self, **options):
            made.append(options["trust_env"])
            super().__init__(**options)

    monkeypatch.setattr(control.httpx2, "AsyncClient", Client)
    async with steering(url):
        pass
    assert made == [uses_proxy]


async def test_control_sends_the_key_and_says_when_another_is_wanted():
    with BenchServer(api_key="secret").running() as fake:
        async with steering(fake.url, "secret") as steer:
            assert await steer.mode() == "off"
        async with steering(fake.url) as steer:
            with pytest.raises(NotAuthorised) as refusal:
                await steer.mode()
    assert refusal.value.hint == KEY_HINT


async def test_control_of_nobody_says_who_does_not_answer():
    async with steering("http://127.0.0.1:9") as steer:
        with pytest.raises(ServerUnreachable, match="does not answer"):
            await steer.counts()


async def test_control_of_a_server_that_answers_nonsense_says_so():
    with BenchServer(mode="no such mode").running() as fake:
        async with steering(fake.url) as steer:
            with pytest.raises(KvflowError, match="answers nonsense"):
                await steer.mode()


async def test_control_of_a_server_that_answers_lists_in_lists_without_end_says_so():
    class Nested(BenchServer):
        def policy(self, body):
            return 200, b'{"mode": "off", "more": ' + b"[" * 50_000 + b"]" * 50_000 + b"}"

    with Nested().running() as fake:
        async with steering(fake.url) as steer:
            with pytest.raises(KvflowError, match="answers nonsense"):
                await steer.mode()


async def test_traffic_is_what_the_server_copies():
    with BenchServer().running() as fake:
        async with steering(fake.url) as steer:
            assert await steer.traffic() == make_frame().traffic


def test_flat_has_counters_of_engine_and_link_but_nothing_pending():
    found = flat(make_frame(prefetches=4))
    assert (found["prefetches"], found["h2d_bytes"]) == (4, 7)
    assert not [name for name in found if "pending" in name]


def test_flat_adds_up_what_is_counted_by_reason():
    told = make_frame()
    counters = msgspec.structs.replace(told.counters, bad_hints={"missing": 2, "too_long": 3})
    assert flat(msgspec.structs.replace(told, counters=counters))["bad_hints"] == 5


def test_difference_is_what_was_counted_in_between():
    assert difference({"a": 5.0, "new": 2.0}, {"a": 3.0}) == {"a": 2.0, "new": 2.0}
    assert difference(None, {"a": 3.0}) is None
    assert difference({"a": 5.0}, None) is None
