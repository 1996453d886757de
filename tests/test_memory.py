import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.calm import calm

from kvflow.memory import Conversations, Limits
from kvflow.prefixes import PROMPT_END, Identity

A = Identity("app", "a")
B = Identity("app", "b")
SYSTEM = list(range(1000, 1100))
GENERATE = [1, 2]  # as a chat template ends a prompt


def turn(*said: int) -> list[int]:
    """A prompt after so many words were said in its conversation, ten tokens each."""
    return [*SYSTEM, *(token for word in said for token in [word] * 10), *GENERATE]


class Oracle:
    """The same by keeping whole prompts."""

    def __init__(self) -> None:
        self.last: dict[tuple[str, Identity], list[int]] = {}
        self.converses: dict[Identity, bool] = {}

    def observe(self, identity: Identity, run: str, prompt: list[int]) -> bool:
        kept = prompt[: max(len(prompt) - PROMPT_END, 0)]
        last = self.last.get((run, identity))
        if last is not None:
            longer = 0 < len(last) < len(kept)
            self.converses[identity] = longer and prompt[: len(last)] == last
        self.last[run, identity] = kept
        return self.converses.get(identity, False)

    def end(self, client: str, run: str) -> None:
        for known in [k for k in self.last if k[0] == run and k[1].client == client]:
            del self.last[known]


agents = st.builds(Identity, st.sampled_from("xy"), st.sampled_from("ab"))
runs = st.sampled_from(["r", "s"])
prompts = st.builds(
    lambda words, end: turn(*words)[: len(SYSTEM) + 10 * len(words) + end],
    st.lists(st.integers(1, 2), max_size=5),
    st.integers(-12, 2),
)
events = st.lists(
    st.one_of(
        st.tuples(st.just("observe"), agents, runs, prompts | st.lists(st.just(1), max_size=20)),
        st.tuples(st.just("end"), st.sampled_from("xy"), runs, st.none()),
    ),
    max_size=40,
)


@calm
@given(events)
def test_observe_in_any_history_says_what_keeping_whole_prompts_says(history):
    ours, theirs = Conversations(), Oracle()
    for kind, who, run, prompt in history:
        if kind == "observe":
            assert ours.observe(who, run, prompt) == theirs.observe(who, run, prompt)
        else:
            ours.end(who, run)
            theirs.end(who, run)
        assert len(ours) == len(theirs.last)


def test_agent_whose_next_prompt_extends_the_last_one_holds_conversations():
    of = Conversations()
    assert [of.observe(A, "r", turn(*range(n))) for n in (1, 2, 3)] == [False, True, True]


def test_agent_that_begins_anew_within_a_run_holds_none():
    of = Conversations()
    assert [of.observe(A, "r", turn(word)) for word in (1, 2, 3)] == [False, False, False]


def test_agent_is_judged_by_its_latest_call():
    of = Conversations()
    for prompt in (turn(1), turn(1, 2)):
        of.observe(A, "r", prompt)
    assert of.converses(A)
    of.observe(A, "r", turn(9))
    assert not of.converses(A)


def test_prompt_end_that_is_dropped_when_the_answer_is_history_does_not_matter():
    of = Conversations()
    thinking = [50, 51, 52, 53]
    of.observe(A, "r", turn(1) + thinking)
    assert of.observe(A, "r", turn(1, 2) + thinking)


def test_same_prompt_again_is_no_conversation():
    of = Conversations()
    of.observe(A, "r", turn(1))
    assert not of.observe(A, "r", turn(1))


@pytest.mark.parametrize(("who", "run"), [(B, "r"), (A, "s"), (A._replace(client="c"), "r")])
def test_call_of_another_agent_run_or_client_is_no_next_turn(who, run):
    of = Conversations()
    of.observe(A, "r", turn(1))
    assert not of.observe(who, run, turn(1, 2))


def test_agent_that_is_known_to_converse_does_so_from_the_first_call_of_the_next_run():
    of = Conversations()
    for prompt in (turn(1), turn(1, 2)):
        of.observe(A, "r", prompt)
    assert of.observe(A, "s", turn(7))


def test_run_of_the_same_name_after_the_end_begins_anew():
    of = Conversations()
    for prompt in (turn(1), turn(1, 2)):
        of.observe(A, "r", prompt)
    of.end("app", "r")
    assert len(of) == 0
    assert of.observe(A, "r", turn(7))


def test_memory_is_bounded_however_many_runs_and_agents_there_are():
    of = Conversations(Limits(calls=10, agents=5))
    for run in range(200):
        for agent in range(3):
            who = Identity("app", f"a{run}-{agent}")
            for prompt in (turn(1), turn(1, 2)):
                of.observe(who, f"r{run}", prompt)
                assert len(of) <= 10
    known = [Identity("app", f"a{run}-{agent}") for run in range(200) for agent in range(3)]
    assert sum(map(of.converses, known)) == 5


def test_run_with_more_agents_than_may_be_kept_is_given_up_whole():
    of = Conversations(Limits(calls=10))
    for agent in range(25):
        of.observe(Identity("app", f"a{agent}"), "r", turn(1))
    assert len(of) == 3
