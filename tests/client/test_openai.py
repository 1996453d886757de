from collections.abc import Iterator
from typing import Any

import openai
import pytest
from pydantic import BaseModel
from support.fake_app_server import TEXT, FakeAppServer

from kvflow.client import Run
from kvflow.client.openai import as_agent
from kvflow.errors import UsageError

pytestmark = pytest.mark.engine  # OpenAI's client comes with SGLang

ASK: dict[str, Any] = {"model": "default", "messages": [{"role": "user", "content": "Plan it."}]}
PROMPT: dict[str, Any] = {"model": "default", "prompt": "Plan it."}


@pytest.fixture
def fake() -> Iterator[FakeAppServer]:
    with FakeAppServer().running() as server:
        yield server


@pytest.fixture
def client(fake: FakeAppServer) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{fake.url}/v1", api_key="k", max_retries=0) as one:
        yield one


@pytest.fixture
def run(fake: FakeAppServer) -> Run:
    return Run(fake.url, "app", "peer", "r42")


def test_create_carries_the_tag_and_answers_as_ever(fake, client, run):
    planner = as_agent(client, run, "planner", fixed_tokens=812, final=True)
    answer = planner.chat.completions.create(**ASK)
    assert answer.choices[0].message.content == TEXT
    assert [one.params for one in fake.calls] == [run.tag("planner", 812, final=True)]
    assert fake.calls[0].body == ASK | {"custom_params": run.tag("planner", 812, final=True)}


def test_create_with_stream_carries_the_tag(fake, client, run):
    stream = as_agent(client, run, "planner").chat.completions.create(**ASK, stream=True)
    assert "".join(chunk.choices[0].delta.content or "" for chunk in stream) == TEXT
    assert fake.agents == ["planner"]


def test_stream_helper_carries_the_tag(fake, client, run):
    with as_agent(client, run, "planner").chat.completions.stream(**ASK) as stream:
        assert stream.get_final_completion().choices[0].message.content == TEXT
    assert fake.agents == ["planner"]


def test_parse_carries_the_tag(fake, client, run):
    class Plan(BaseModel):
        steps: list[str]

    with pytest.raises(ValueError, match="Invalid JSON"):  # the answer is text
        as_agent(client, run, "planner").chat.completions.parse(**ASK, response_format=Plan)
    assert fake.agents == ["planner"]


def test_raw_response_carries_the_tag(fake, client, run):
    raw = as_agent(client, run, "planner").chat.completions.with_raw_response.create(**ASK)
    assert raw.parse().choices[0].message.content == TEXT
    assert fake.agents == ["planner"]


def test_completions_carry_the_tag(fake, client, run):
    answer = as_agent(client, run, "planner").completions.create(**PROMPT)
    assert answer.choices[0].text == TEXT
    assert fake.agents == ["planner"]


def test_responses_are_sent_as_they_are_since_sglang_drops_tags_there(fake, client, run):
    as_agent(client, run, "planner").responses.create(model="default", input="Plan it.")
    assert [one.path for one in fake.calls] == ["/v1/responses"]
    assert fake.agents == [None]


def test_extra_body_of_a_call_is_sent_beside_the_tag(fake, client, run):
    extra = {"top_k": 5, "custom_params": {"thinking_budget": 9}}
    as_agent(client, run, "planner").chat.completions.create(**ASK, extra_body=extra)
    assert fake.calls[0].body["top_k"] == 5
    assert fake.calls[0].params == run.tag("planner") | {"thinking_budget": 9}
    assert extra == {"top_k": 5, "custom_params": {"thinking_budget": 9}}


def test_tag_of_the_call_itself_goes_before_that_of_the_client(fake, client, run):
    extra = {"custom_params": {"kvflow": {"final": True, "agent": "critic"}}}
    as_agent(client, run, "planner", fixed_tokens=9).chat.completions.create(
        **ASK, extra_body=extra
    )
    assert fake.calls[0].params == run.tag("critic", 9, final=True)


def test_client_that_was_given_is_left_as_it_was(fake, client, run):
    as_agent(client, run, "planner")
    client.chat.completions.create(**ASK)
    assert fake.agents == [None]


def test_agents_of_one_client_speak_for_themselves(fake, client, run):
    planner, executor = as_agent(client, run, "planner"), as_agent(client, run, "executor")
    for speaker in (planner, executor, planner):
        speaker.chat.completions.create(**ASK)
    assert fake.agents == ["planner", "executor", "planner"]


@pytest.mark.parametrize("method", ["copy", "with_options"])
def test_copy_of_an_agents_client_speaks_as_the_agent(fake, client, run, method):
    again = as_agent(client, run, "planner")
    for timeout in (5, 6):
        again = getattr(again, method)(timeout=timeout)
    again.chat.completions.create(**ASK)
    assert again.timeout == 6
    assert fake.agents == ["planner"]


def test_client_of_an_agent_given_to_another_speaks_as_the_other(fake, client, run):
    planner = as_agent(client, run, "planner", fixed_tokens=812, final=True)
    as_agent(planner, run, "critic").chat.completions.create(**ASK)
    assert fake.calls[0].params == run.tag("critic")


def test_steps_of_the_run_are_those_at_the_time_of_the_call(fake, client, run):
    planner = as_agent(client, run, "planner")
    planner.chat.completions.create(**ASK)
    run.steps = {"planner": 0, "executor": 1}
    planner.chat.completions.create(**ASK)
    given = [one.params.get("kvflow_steps") for one in fake.calls]
    assert given == [None, {"planner": 0, "executor": 1}]


async def test_async_client_carries_the_tag_with_and_without_stream(fake, run):
    async with openai.AsyncOpenAI(base_url=f"{fake.url}/v1", api_key="k") as client:
        planner = as_agent(client, run, "planner")
        answer = await planner.chat.completions.create(**ASK)
        stream = await planner.with_options(timeout=5).chat.completions.create(**ASK, stream=True)
        streamed = [chunk.choices[0].delta.content or "" async for chunk in stream]
    assert answer.choices[0].message.content == "".join(streamed) == TEXT
    assert fake.agents == ["planner", "planner"]


def test_another_kind_of_client_is_refused_with_a_way_out(run):
    with pytest.raises(UsageError) as refusal:
        as_agent({"chat": 1}, run, "planner")
    assert "dict is not a client" in refusal.value.what
    assert "extra_body" in refusal.value.hint


def test_agent_whose_name_is_none_is_refused_before_any_call(client, run):
    with pytest.raises(UsageError, match="not valid"):
        as_agent(client, run, "")
