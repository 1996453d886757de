"""What the engine knows of agents' prompts, and from where."""

import pytest
from support.tags import by

from kvflow.engine.agent_prompts import AgentPrompts, Namespace
from kvflow.hints import Tag, parse

FIXED = list(range(100))
TAIL = [7, 7, 7]
PLAIN = Namespace()


def tag(**rest: object) -> Tag:
    found, _ = parse(by("a", **rest))  # type: ignore[arg-type]
    assert found is not None
    return found


def boundaries(
    prompts: AgentPrompts, *tails: int, namespace: Namespace = PLAIN
) -> list[int | None]:
    return [prompts.read(tag(), [*FIXED, tail], namespace).boundary for tail in tails]


def test_prefix_that_nobody_tells_is_learned_from_the_calls():
    assert boundaries(AgentPrompts(16), 1, 2, 3, 4) == [None, None, 96, 96]


def test_prefix_is_learned_for_each_namespace_by_itself():
    prompts = AgentPrompts(1)
    boundaries(prompts, 1, 2, 3)
    assert boundaries(prompts, 4, namespace=Namespace(cache_salt="s")) == [None]
    assert boundaries(prompts, 4, namespace=Namespace(extra_key="lora")) == [None]


def test_prefix_that_is_told_is_not_learned():
    prompts = AgentPrompts(1)
    prompts.register(None, "work", {"a": FIXED[:50]}, {})
    assert boundaries(prompts, 1, 2, 3) == [50, 50, 50]


def test_prefix_whose_agent_is_silent_for_long_is_forgotten():
    prompts = AgentPrompts(1)
    boundaries(prompts, 1, 2, 3)
    for _ in range(3600):
        prompts.tick()
    assert boundaries(prompts, 4) == [None]


def test_registered_length_is_told_by_recipe():
    prompts = AgentPrompts(1)
    prompts.register("app", "work", {"a": FIXED}, {})
    assert prompts.prefix_tokens("app", "work", "a") == 100
    assert prompts.prefix_tokens(None, "work", "a") is None


def test_forgotten_recipe_tells_nothing_any_more():
    prompts = AgentPrompts(1)
    prompts.register("app", "work", {"a": FIXED[:50]}, {"a": True})
    prompts.forget("app", "work")
    assert prompts.read(tag(), FIXED, PLAIN) == (None, False)


def converses(prompts: AgentPrompts, *prompt_lengths: int) -> list[bool]:
    talk = [*FIXED, *range(1000, 2000)]
    return [prompts.read(tag(), talk[:length], PLAIN).converses for length in prompt_lengths]


def test_conversation_shows_with_the_first_prompt_that_extends_the_last():
    assert converses(AgentPrompts(1), 120, 160, 200) == [False, True, True]


def test_conversation_is_compared_within_a_run():
    prompts = AgentPrompts(1)
    converses(prompts, 120)
    prompts.run_ended("app", "run")
    assert converses(prompts, 160, 200) == [False, True]


@pytest.mark.parametrize("does", [True, False])
def test_recipe_that_says_whether_an_agent_converses_is_believed(does):
    prompts = AgentPrompts(1)
    prompts.register(None, "work", {}, {"a": does})
    assert converses(prompts, 120, 160) == [does, does]
