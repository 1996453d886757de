from collections.abc import Iterator
from typing import Any

import pytest
import support.engine  # noqa: F401 - before SGLang
from sglang.lang.api import function, gen, select
from sglang.lang.backend.runtime_endpoint import RuntimeEndpoint
from support.fake_app_server import TEXT, FakeAppServer

from kvflow.client import Run
from kvflow.client.sgl import as_agent
from kvflow.errors import UsageError

pytestmark = pytest.mark.engine


@function
def planner(s, question):
    s += "You plan. " + question
    s += gen("plan", max_tokens=16)


@function
def forker(s):
    s += "You plan twice. "
    s.text()  # forks warm the cache with the text that has come so far
    branches = s.fork(2)
    for branch in branches:
        branch += gen("plan", max_tokens=16)
    branches.join()


@function
def judge(s, question):
    s += question
    s += select("verdict", choices=["yes", "no"])


@function
def counter(s):
    s += "How many? "
    s += gen("count", dtype=int)


@pytest.fixture
def fake() -> Iterator[FakeAppServer]:
    with FakeAppServer().running() as server:
        yield server


@pytest.fixture
def backend(fake: FakeAppServer) -> Any:
    return RuntimeEndpoint(fake.url)


@pytest.fixture
def run(fake: FakeAppServer) -> Run:
    return Run(fake.url, "app", "peer", "r42")


def test_gen_carries_the_tag_of_the_agent_that_the_function_is(fake, backend, run):
    state = as_agent(planner, run, backend)("Where to?")
    assert state["plan"] == TEXT
    assert [one.params for one in fake.calls] == [run.tag("planner")]


def test_gen_sends_what_it_sends_without_a_tag_and_the_tag(fake, backend, run):
    planner.run("Where to?", backend=backend, temperature=0, stop="END").text()
    as_agent(planner, run, backend).run("Where to?", temperature=0, stop="END").text()
    plain, tagged = (one.body for one in fake.calls)
    assert tagged["sampling_params"].pop("custom_params") == run.tag("planner")
    assert tagged == plain


def test_gen_of_a_type_is_still_held_to_it(fake, backend, run):
    as_agent(counter, run, backend)().text()
    (call,) = fake.calls
    assert call.agent == "counter"
    assert "[0-9]" in call.body["sampling_params"]["regex"]


def test_name_that_is_given_goes_before_that_of_the_function(fake, backend, run):
    speaker = as_agent(planner, run, backend, "strategist", fixed_tokens=812, final=True)
    speaker("Where to?").text()
    assert [one.params for one in fake.calls] == [run.tag("strategist", 812, final=True)]


def test_streamed_gen_carries_the_tag(fake, backend, run):
    state = as_agent(planner, run, backend).run("Where to?", stream=True)
    assert "".join(state.text_iter("plan")) == TEXT
    assert fake.agents == ["planner"]


def test_select_carries_the_tag_with_each_of_its_requests(fake, backend, run):
    state = as_agent(judge, run, backend)("Is it?")
    assert state["verdict"] in ("yes", "no")
    assert set(fake.agents) == {"judge"}
    assert fake.calls[-1].body["text"] == ["Is it?yes", "Is it?no"]


def test_forks_carry_the_tag_and_what_warms_the_cache_before_does_not(fake, backend, run):
    as_agent(forker, run, backend)().text()
    assert fake.agents == [None, "forker", "forker"]
    assert fake.calls[0].body["sampling_params"]["max_new_tokens"] == 0


def test_batch_carries_the_tag_with_each_of_its_calls(fake, backend, run):
    states = as_agent(planner, run, backend).run_batch([{"question": "A?"}, {"question": "B?"}])
    assert [state["plan"] for state in states] == [TEXT, TEXT]
    assert fake.agents == ["planner", "planner"]


def test_function_that_is_bound_from_an_agents_speaks_as_the_agent(fake, backend, run):
    as_agent(planner, run, backend, "strategist").bind(question="A?").run().text()
    assert fake.agents == ["strategist"]


def test_function_of_an_agent_given_to_another_speaks_as_the_other(fake, backend, run):
    first = as_agent(planner, run, backend, "strategist", fixed_tokens=812)
    as_agent(first, run, backend, "critic")("Where to?").text()
    assert [one.params for one in fake.calls] == [run.tag("critic")]


def test_function_and_backend_that_were_given_are_left_as_they_were(fake, backend, run):
    as_agent(planner, run, backend)
    planner.run("Where to?", backend=backend).text()
    assert fake.agents == [None]


def test_steps_of_the_run_are_those_at_the_time_of_the_call(fake, backend, run):
    speaker = as_agent(planner, run, backend)
    run.steps = {"planner": 0, "executor": 1}
    speaker("Where to?").text()
    assert fake.calls[0].params["kvflow_steps"] == {"planner": 0, "executor": 1}


def test_runtime_that_holds_an_endpoint_is_a_backend(fake, backend, run):
    class Runtime:
        endpoint = backend

    as_agent(planner, run, Runtime())("Where to?").text()
    assert fake.agents == ["planner"]


@pytest.mark.parametrize(
    ("program", "other_backend", "complaint"),
    [(len, None, "not a sgl.function"), (planner, object(), "object is not a backend")],
)
def test_what_cannot_be_tagged_is_refused(backend, run, program, other_backend, complaint):
    with pytest.raises(UsageError, match=complaint):
        as_agent(program, run, other_backend or backend)


def test_agent_whose_name_is_none_is_refused_before_any_call(backend, run):
    with pytest.raises(UsageError, match="not valid"):
        as_agent(planner, run, backend, "")
