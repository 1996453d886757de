"""SGLang with the plugin, asked as an application asks it."""

import random
from collections.abc import Iterator

import openai
import pytest
from support.processes import wait_until
from support.real_server import Answer, RealServer, Refused, tag
from support.recipes import make_recipe
from support.server_kinds import POOL

from kvflow.client import Run
from kvflow.client.openai import as_agent
from kvflow.client.server import connect
from kvflow.client.warm import warm
from kvflow.workload import fixed_ids

pytestmark = [pytest.mark.engine, pytest.mark.timeout(900)]

FIXED, DYNAMIC, OUTPUT = 256, 16, 2
COMPARED = 8  # tokens of an answer that is compared with another
SLOTS = POOL // FIXED
assert SLOTS == 4  # prefixes and their tails: 0.43 of ten prefixes, 0.86 of five
MODES = ("off", "evict", "prefetch", "full")


@pytest.fixture(scope="module")
def stock(stock_server):
    """What stock SGLang with a host tier answers to the traffic of `varied`."""
    stock_server.empty()
    return varied(stock_server)


@pytest.fixture(scope="module")
def ours(plugin_server):
    """What SGLang with the plugin answers to the same, by mode."""
    answers = {}
    for mode in MODES:
        begin(plugin_server, mode)
        answers[mode] = varied(plugin_server)
    return answers


@pytest.fixture
def server(plugin_server):
    begin(plugin_server, "evict")
    return plugin_server


def begin(server: RealServer, mode: str) -> None:
    server.empty()
    server.set_mode(mode)


def prefix(agent: int) -> list[int]:
    return random.Random(agent).choices(range(256), k=FIXED)


def steps(speaking: int, agents: int) -> dict[str, int]:
    return {f"a{i}": (i - speaking) % agents or agents for i in range(agents)}


def cycle(
    server: RealServer, agents: int, rounds: int, run: str, client: str = "t", tells: bool = True
) -> Iterator[bool]:
    """Walk agents in a cycle; for each call whether its fixed prefix was on the device."""
    suffixes = random.Random(run)
    for call in range(agents * rounds):
        speaking = call % agents
        # A run that is not ended is expected to go on: its agents keep their steps for a while.
        final = call == agents * rounds - 1
        length = {"fixed_tokens": FIXED} if tells else {}
        hint = tag(f"a{speaking}", run=run, final=final, client=client, **length)
        hint["kvflow_steps"] = steps(speaking, agents)
        tail = suffixes.choices(range(256), k=DYNAMIC)
        found = server.generate([*prefix(speaking), *tail], OUTPUT, hint)
        # What is still being copied cannot be evicted, however far it is.
        wait_until(lambda: not server.copies_fly(), "backups")
        yield found.device >= FIXED


def beladys_hits(agents: int, rounds: int, slots: int) -> list[bool]:
    """Which calls of the cycle hit when the resident that is needed last is always the victim."""
    resident: list[int] = []
    hits = []
    for call in range(agents * rounds):
        now = call % agents
        hits.append(now in resident)
        if now not in resident:
            if len(resident) == slots:
                resident.remove(max(resident, key=lambda agent: (agent - now) % agents))
            resident.append(now)
    return hits


@pytest.fixture(scope="module")
def told(plugin_server):
    """Which calls of a cycle of five hit, each with its prefix told: four of five fit."""
    begin(plugin_server, "evict")
    return list(cycle(plugin_server, 5, 6, run="told"))


def is_beladys(found: list[bool], agents: int) -> bool:
    """Whether a cycle hits as often as can be, after two warm rounds."""
    best = beladys_hits(agents, len(found) // agents, SLOTS)
    return sum(found[2 * agents :]) >= 0.99 * sum(best[2 * agents :])


def test_evict_reaches_beladys_share_of_device_hits_in_a_cycle_of_ten(server):
    found = list(cycle(server, 10, 6, run="belady"))
    assert is_beladys(found, 10), found


def test_evict_reaches_beladys_share_of_device_hits_in_a_cycle_of_five(told):
    assert is_beladys(told, 5), told


def test_prefixes_that_are_learned_are_found_as_often_as_those_that_are_told(server, told):
    learned = list(cycle(server, 5, 8, run="learned", client="learns", tells=False))
    # Hits come round again every 20 calls.
    assert sum(told[-20:]) == 15
    assert abs(sum(learned[-20:]) - sum(told[-20:])) <= 0.02 * sum(told[-20:])


async def test_warm_prefixes_are_there_when_the_first_call_comes(server, tmp_path):
    server.set_mode("prefetch")
    agents = {f"w{i}": {"fixed_tokens": FIXED} for i in range(6)}  # more than the pool holds
    loaded = make_recipe(tmp_path, agents)
    async with connect(server.url) as client:
        assert [agent async for agent in warm(loaded, client)] == list(agents)
        vocabulary = await client.vocabulary()
    for agent in agents:
        prompt = [*fixed_ids(loaded.recipe, agent, vocabulary), 7, 7]
        found = server.generate(prompt, 1, tag(agent, run="first", fixed_tokens=FIXED, final=True))
        assert found.device + found.host >= FIXED


def test_off_evicts_the_least_recently_used_as_sglang_does(server):
    server.set_mode("off")
    assert not any(cycle(server, 10, 2, run="off"))


def test_mode_can_be_changed_on_the_running_server(server):
    server.set_mode("off")
    list(cycle(server, 10, 1, run="switch"))
    server.set_mode("evict")
    assert any(list(cycle(server, 10, 2, run="switch")))


def varied(server: RealServer) -> list[Answer]:
    """Calls of ten agents, one at a time, in an order that no steps foretell."""
    chance = random.Random("varied")
    answers = []
    for _ in range(24):
        agent = chance.randrange(10)
        tail = chance.choices(range(256), k=DYNAMIC)
        hint = tag(f"a{agent}", run="varied", fixed_tokens=FIXED, final=True)
        answers.append(server.generate([*prefix(agent), *tail], COMPARED, hint))
    return answers


def test_off_finds_what_stock_sglang_finds(ours, stock):
    found = [(answer.device, answer.host) for answer in ours["off"]]
    assert found == [(answer.device, answer.host) for answer in stock]


@pytest.mark.parametrize("mode", MODES)
def test_output_is_that_of_stock_sglang_in_every_mode(ours, stock, mode):
    assert any(answer.host for answer in ours[mode])
    for answer, theirs in zip(ours[mode], stock, strict=True):
        assert answer.ids == theirs.ids
        assert answer.logprobs == pytest.approx(theirs.logprobs, abs=2e-3)


def test_tails_are_not_written_to_the_host_and_prefixes_are(server):
    before = server.snapshot()["counters"]["not_backed_up_tokens"]
    list(cycle(server, 2, 1, run="backup"))
    server.generate([1], tokens=1)  # a pass in which SGLang notes what has been written
    frame = server.snapshot()
    states = {node["depth"]: node["state"] for node in frame["nodes"] if node["tokens"] > 1}
    assert states[0] in ("mirrored", "offloading")
    assert states[FIXED] == "device"
    assert frame["counters"]["not_backed_up_tokens"] - before == 2 * (DYNAMIC + OUTPUT - 1)


def test_snapshot_says_who_speaks_when_and_where_its_prefix_is(server):
    for speaking in range(2):
        hint = tag(f"a{speaking}", run="who", fixed_tokens=FIXED, final=False)
        server.generate(prefix(speaking), 1, hint | {"kvflow_steps": steps(speaking, 5)})
    agents = {one["agent"]: one for one in server.snapshot()["agents"] if one["client"] == "t"}
    server.generate(prefix(0), 1, tag("a0", run="who", fixed_tokens=FIXED, final=True))
    assert [agents[f"a{i}"]["steps"] for i in range(5)] == [4, 5, 1, 2, 3]
    assert [agents[f"a{i}"]["prefix_tokens"] for i in range(2)] == [FIXED, FIXED]


def test_observing_changes_nothing_that_is_observed(server):
    list(cycle(server, 5, 1, run="watch"))
    first = server.snapshot()
    for _ in range(20):
        server.snapshot()
    assert server.snapshot()["nodes"] == first["nodes"]


MALFORMED = [
    {"kvflow": 7},
    {"kvflow": []},
    {"kvflow": {}},
    {"kvflow": {"client": 1, "workflow": "w", "run": "r", "agent": "a"}},
    {"kvflow": {"client": "t", "workflow": "w", "run": "r", "agent": "x" * 1_000_000}},
    {"kvflow": {"client": "t", "workflow": "w", "run": "r", "agent": {"deep": {"er": [1, [2]]}}}},
    tag("a", fixed_tokens=-1),
    tag("a", fixed_tokens=10**30),
    tag("a", fixed_tokens="many"),
    tag("a", final="yes"),
    tag("a") | {"kvflow_steps": {"a": -3, "b": 2.5, "c": None}},
    tag("a") | {"kvflow_steps": [1, 2]},
    {"kvflow_steps": {"a": 1}},
    tag("no such agent", workflow="no such workflow"),
    tag("\u0000\u001b[31m"),
]


def test_malformed_tag_of_any_kind_is_answered_normally_and_counted(server):
    before = sum(server.snapshot()["counters"]["bad_hints"].values())
    expected = server.generate(prefix(1), COMPARED).ids
    for bad in MALFORMED:
        assert server.generate(prefix(1), COMPARED, bad).ids == expected
    after = server.snapshot()
    assert sum(after["counters"]["bad_hints"].values()) >= before + len(MALFORMED) - 1
    assert after["waiting"] == after["running"] == 0


@pytest.mark.parametrize(
    "body", [{"mode": "best"}, {"mode": None}, {}, [], {"mode": "off", "x": 1}]
)
def test_policy_that_makes_no_sense_is_refused_with_a_reason(server, body):
    with pytest.raises(Refused) as error:
        server.post("/kvflow/policy", body, method="PATCH")
    assert error.value.code == 400
    assert server.get("/kvflow/policy")["mode"] == "evict"


def test_calls_of_a_tagged_openai_client_are_counted_and_others_are_not(server):
    before = server.snapshot()["counters"]
    ask = {"model": "default", "messages": [{"role": "user", "content": "Plan it."}]}
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", timeout=120) as client:
        with Run(server.url, client="openai", workflow="any") as run:
            planner = as_agent(client, run, "planner")
            planner.chat.completions.create(**ask, max_tokens=4)
            list(planner.chat.completions.create(**ask, max_tokens=4, stream=True))
            planner.completions.create(model="default", prompt="Plan it.", max_tokens=4)
        client.chat.completions.create(**ask, max_tokens=4)
    after = server.snapshot()["counters"]
    assert after["tagged_calls"] - before["tagged_calls"] == 3
    assert after["untagged_calls"] - before["untagged_calls"] == 1
    assert after["bad_hints"] == before["bad_hints"]
