from array import array
from collections import OrderedDict
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.calm import calm

from kvflow.prefixes import PROMPT_END, Identity, Limits, PrefixLearner, common_length

A = Identity("app", "a")
SYSTEM = list(range(1000, 1200))
SMALL = Limits(least_tokens=1)


def learner(page: int = 1, limits: Limits = SMALL) -> PrefixLearner:
    return PrefixLearner(page, limits)


def told(of: PrefixLearner, *prompts: list[int], identity: Identity = A) -> list[int | None]:
    return [of.observe(identity, prompt) for prompt in prompts]


def with_tails(prefix: list[int], *tails: int) -> list[list[int]]:
    return [[*prefix, tail, tail + 1] for tail in tails]


def in_common(one: list[int], other: list[int]) -> int:
    return sum(
        all(one[i] == other[i] for i in range(end))
        for end in range(1, min(len(one), len(other)) + 1)
    )


def is_next_turn(last: list[int], prompt: list[int]) -> bool:
    goes_on = all(token in prompt[i : i + 1] for i, token in enumerate(last[:-PROMPT_END]))
    return goes_on and len(prompt) - len(last) > PROMPT_END


class Oracle:
    """The same by keeping every prompt and comparing token by token."""

    def __init__(self, page: int, limits: Limits) -> None:
        self.page, self.limits, self.ticks = page, limits, 0
        self.prompts: OrderedDict[Identity, list[list[int]]] = OrderedDict()
        self.heard: dict[Identity, int] = {}

    def observe(self, identity: Identity, prompt: list[int]) -> int | None:
        self.prompts.setdefault(identity, []).append(prompt)
        self.prompts.move_to_end(identity)
        self.heard[identity] = self.ticks
        while len(self.prompts) > 1 and (
            len(self.prompts) > self.limits.identities
            or sum(len(prompts[-1]) for prompts in self.prompts.values()) > self.limits.tokens
        ):
            self.prompts.popitem(last=False)
        pairs = list(pairwise(self.prompts[identity]))
        telling = [pair for pair in pairs if not is_next_turn(*pair)][1 - self.limits.calls :]
        if len(telling) < self.limits.calls - 1:
            return None
        shared = min(in_common(*pair) for pair in [*telling, pairs[-1]])
        while shared % self.page:
            shared -= 1
        return shared if shared and shared >= self.limits.least_tokens else None

    def tick(self) -> None:
        self.ticks += 1
        for identity in list(self.prompts):
            if self.ticks - self.heard[identity] >= self.limits.silent_ticks:
                del self.prompts[identity]


# Few identities and tokens, so that prompts meet, and prompts long enough for several pages.
identities = st.builds(
    Identity, st.sampled_from("xy"), st.sampled_from("ab"), st.sampled_from([None, "salt"])
)
begins = st.sampled_from([SYSTEM[:40], SYSTEM[:40] + [7] * 30, SYSTEM[:9], []])
prompts = st.builds(lambda begin, tail: begin + tail, begins, st.lists(st.integers(0, 1)))
events = st.lists(
    st.one_of(
        st.tuples(st.just("observe"), identities, prompts),
        st.tuples(st.just("tick"), st.integers(1, 4), st.none()),
    ),
    max_size=60,
)
limits = st.builds(
    Limits,
    calls=st.integers(2, 4),
    least_tokens=st.sampled_from([0, 1, 20]),
    identities=st.integers(1, 5),
    tokens=st.sampled_from([50, 150, 10_000]),
    silent_ticks=st.integers(1, 6),
)


@calm
@given(st.sampled_from([1, 4, 16]), limits, events)
def test_observe_in_any_history_says_what_comparing_all_prompts_says(page, limits, history):
    ours, theirs = PrefixLearner(page, limits), Oracle(page, limits)
    for kind, what, prompt in history:
        if kind == "observe":
            assert ours.observe(what, prompt) == theirs.observe(what, prompt)
        else:
            for _ in range(what):
                ours.tick()
                theirs.tick()
        assert len(ours) == len(theirs.prompts)
        assert ours.tokens == sum(len(prompts[-1]) for prompts in theirs.prompts.values())


@calm
@given(st.integers(0, 30_000), st.integers(0, 3), st.integers(0, 3))
def test_common_length_of_long_arrays_is_where_they_part(shared, more, less):
    one = array("q", [*range(shared), *([-1] * more)])
    other = array("q", [*range(shared), *([-2] * less)])
    assert common_length(one, other) == common_length(other, one) == shared


def test_prefix_is_not_known_before_enough_calls_have_shared_it():
    assert told(learner(), *with_tails(SYSTEM, 1, 2, 3, 4)) == [None, None, 200, 200]


@pytest.mark.parametrize(("page", "found"), [(1, 200), (16, 192), (64, 192), (128, 128)])
def test_prefix_is_rounded_down_to_whole_pages(page, found):
    assert told(learner(page), *with_tails(SYSTEM, 1, 2, 3))[-1] == found


def test_prefix_shorter_than_a_page_is_not_known():
    assert told(learner(256), *with_tails(SYSTEM, 1, 2, 3))[-1] is None


def test_prefix_of_calls_that_are_all_alike_is_the_whole_prompt():
    assert told(learner(), SYSTEM, SYSTEM, SYSTEM)[-1] == 200


def test_suffix_shared_by_chance_is_given_up_at_the_next_call_that_has_another():
    of = learner()
    assert told(of, *with_tails(SYSTEM, 1, 1, 1))[-1] == 202
    assert told(of, *with_tails(SYSTEM, 5)) == [200]


def test_prompt_that_was_edited_leaves_the_shared_part_and_is_learned_after_enough_calls():
    of = learner()
    old, new = SYSTEM, [*SYSTEM[:150], *range(5000, 5100)]
    assert told(of, *with_tails(old, 1, 2, 3))[-1] == 200
    assert told(of, *with_tails(new, 4, 5, 6)) == [150, 150, 250]


def conversation(word: int, turns: int) -> list[list[int]]:
    return [SYSTEM + [word] * 20 * turn for turn in range(1, turns + 1)]


def test_conversation_alone_shows_no_fixed_prefix():
    assert told(learner(), *conversation(7, 8)) == [None] * 8


def test_conversations_one_after_another_have_the_prefix_that_they_share():
    of = learner()
    for word in (1, 2, 3):
        found = told(of, *conversation(word, 5))
    assert found == [200] * 5


def test_conversations_that_take_turns_have_the_prefix_that_they_share():
    turns = zip(conversation(1, 5), conversation(2, 5), strict=True)
    found = told(learner(), *[prompt for pair in turns for prompt in pair])
    assert found == [None, None, *[200] * 8]


def test_suffix_that_is_longer_than_the_short_one_before_is_no_next_turn():
    prompts = [SYSTEM + [word] * length for word, length in ((1, 3), (2, 5), (3, 9))]
    assert told(learner(), *prompts)[-1] == 200


def test_next_turn_with_another_prompt_end_has_no_more_of_the_prefix_than_it_shares():
    of = learner()
    assert told(of, SYSTEM, SYSTEM, SYSTEM)[-1] == 200
    assert told(of, SYSTEM[:195] + [7] * 50) == [195]


def test_start_that_only_the_chat_template_shares_is_no_prefix():
    start = SYSTEM[:30]
    prompts = [[*start, *range(seed, seed + 300)] for seed in (2000, 3000, 4000, 5000)]
    assert told(learner(limits=Limits()), *prompts) == [None] * 4


def test_name_that_stands_for_several_prompts_has_what_all_of_them_share():
    first, second = with_tails(SYSTEM, 1)[0], with_tails(SYSTEM[:100], 1)[0]
    assert told(learner(), first, second, first, second, first)[-1] == 100


@pytest.mark.parametrize(
    "other",
    [
        A._replace(client="other"),
        A._replace(agent="b"),
        A._replace(cache_salt="s"),
        A._replace(extra_key="k"),
    ],
)
def test_calls_of_another_identity_teach_and_unteach_nothing(other):
    of = learner()
    told(of, *with_tails(SYSTEM, 1, 2))
    assert told(of, *with_tails(SYSTEM, 3), identity=other) == [None]
    told(of, [1, 2, 3], identity=other)
    assert told(of, *with_tails(SYSTEM, 4)) == [200]


def test_agent_is_forgotten_once_it_was_silent_for_so_many_ticks():
    of = learner(limits=Limits(least_tokens=1, silent_ticks=3))
    told(of, *with_tails(SYSTEM, 1, 2, 3))
    for _ in range(2):
        of.tick()
    assert told(of, *with_tails(SYSTEM, 4)) == [200]
    for _ in range(3):
        of.tick()
    assert (len(of), of.tokens) == (0, 0)
    assert told(of, *with_tails(SYSTEM, 5)) == [None]


def test_memory_is_bounded_however_many_agents_there_are():
    of = learner(limits=Limits(identities=10, tokens=1500))
    for agent in range(500):
        told(of, SYSTEM, identity=A._replace(agent=f"a{agent}"))
        assert len(of) <= 10
        assert of.tokens <= 1500


def test_prompt_longer_than_all_that_may_be_kept_is_kept_alone():
    of = learner(limits=Limits(least_tokens=1, tokens=100))
    told(of, [1, 2, 3], identity=A._replace(agent="b"))
    assert told(of, SYSTEM, SYSTEM, SYSTEM)[-1] == 200
    assert len(of) == 1


def test_prompt_is_not_seen_to_change_after_its_call():
    of, prompt = learner(), array("q", SYSTEM)
    of.observe(A, prompt)
    prompt[0] = -1
    assert told(of, SYSTEM, SYSTEM)[-1] == 200
