import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.mini_scheduler import MiniScheduler
from support.prefixes import PREFIX, PROMPT, mark_end, scheduler
from support.tags import by

pytestmark = pytest.mark.engine


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner),
    max_leaves=20,
)
NAMES = st.sampled_from(["client", "workflow", "run", "agent", "fixed_tokens", "final", "x"])
NEARLY_TAGS = st.fixed_dictionaries(
    {},
    optional={
        "kvflow": st.dictionaries(NAMES, JUNK | st.just("app")) | JUNK,
        "kvflow_steps": st.dictionaries(st.text(max_size=8), JUNK) | JUNK,
    },
)


@pytest.fixture(scope="module")
def busy() -> MiniScheduler:
    """A server that has seen some agents."""
    mini = scheduler()
    mini.serve(PROMPT, by("a", 30, steps={"a": 2}))
    return mini


@settings(deadline=None, max_examples=150)
@given(params=NEARLY_TAGS | JUNK)
def test_tag_of_any_kind_never_keeps_a_call_from_its_answer(busy, params):
    req = busy.serve([*PREFIX, 1], params, answer=1)
    assert req.finished()
    assert list(busy.cache.calls.in_flight()) == []


@pytest.mark.parametrize(
    "params",
    [
        {"kvflow": "planner"},
        {"kvflow": {"client": "app"}},
        {"kvflow": {"client": 1, "workflow": "w", "run": "r", "agent": "a"}},
        {"kvflow": {"client": "", "workflow": "w", "run": "r", "agent": "a"}},
        {"kvflow": {"client": "c" * 1_000_000, "workflow": "w", "run": "r", "agent": "a"}},
        {"kvflow": {"client": "app", "workflow": "w", "run": "r/1", "agent": "a"}},
        {"kvflow": {"client": {"deep": [1]}, "workflow": "w", "run": "r", "agent": "a"}},
        {"kvflow_steps": {"a": 1}},
    ],
)
def test_tag_that_is_none_is_counted_as_a_bad_hint(params):
    mini = scheduler()
    mini.serve(PROMPT, params)
    counts = mini.cache.calls.counts
    assert counts.bad_hints.total() == 1
    assert (counts.tagged, counts.untagged) == (0, 1)


@pytest.mark.parametrize("fixed", [-1, 2.5, "30", True, 1 << 40, [30]])
def test_tag_with_a_bad_length_counts_as_one_whose_prefix_is_not_known(fixed):
    mini = scheduler()
    params = by("a")
    params["kvflow"]["fixed_tokens"] = fixed
    mini.serve(PROMPT, params)
    counts = mini.cache.calls.counts
    assert (counts.tagged, counts.bad_hints.total()) == (1, 1)
    assert mark_end(mini.cache) == 0
