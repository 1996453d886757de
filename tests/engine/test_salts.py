from collections import Counter

from hypothesis import given
from hypothesis import strategies as st
from support.calm import calm

from kvflow.engine import salts as module
from kvflow.engine.salts import Salts


def test_salt_is_in_use_from_the_first_call_of_a_run():
    salts = Salts()
    assert not salts.in_use("app", "red")
    assert salts.spoke("app", "r1", "red") == {("app", "red")}
    assert salts.in_use("app", "red")
    assert not salts.in_use("app", "blue")
    assert not salts.in_use("other", "red")


def test_salt_of_the_run_that_ended_last_stays_for_the_next_one():
    salts = Salts()
    salts.spoke("app", "r1", "red")
    salts.spoke("app", "r2", "blue")
    assert salts.ended("app", "r1") == set()
    assert salts.ended("app", "r2") == {("app", "red")}
    assert salts.in_use("app", "blue")


def test_run_that_speaks_with_another_salt_leaves_the_one_before():
    salts = Salts()
    salts.spoke("app", "r1", None)
    assert salts.spoke("app", "r1", "red") == {("app", None), ("app", "red")}
    assert not salts.in_use("app", None)


def test_runs_that_nobody_ends_are_forgotten_when_they_were_quiet_for_longest(monkeypatch):
    monkeypatch.setattr(module, "_MOST_RUNS", 3)
    salts = Salts()
    for client, run, salt in (
        ("app", "r1", "red"),
        ("other", "r2", "blue"),
        ("app", "r1", "red"),
        ("app", "r3", "green"),
    ):
        salts.spoke(client, run, salt)
    assert salts.spoke("app", "r4", "grey") == {("app", "grey"), ("other", "blue")}
    assert list(salts.of("app")) == ["red", "green", "grey"]
    assert list(salts.of("other")) == []


events = st.tuples(
    st.sampled_from(["app", "other"]),
    st.sampled_from(["r1", "r2", "r3"]),
    st.sampled_from([None, "red", "blue", "end"]),
)


@calm
@given(st.lists(events, max_size=40))
def test_salts_in_use_are_those_of_live_runs_and_of_the_last_that_ended(history):
    salts = Salts()
    live: dict[tuple[str, str], str | None] = {}
    last: dict[str, str | None] = {}
    for client, run, salt in history:
        before = used(client, live, last)
        if salt != "end":
            live[client, run] = salt
            changed = salts.spoke(client, run, salt)
        else:
            if (client, run) in live:
                last[client] = live.pop((client, run))
            changed = salts.ended(client, run)
        after = used(client, live, last)
        assert changed == {(client, one) for one in before ^ after}
        assert all(salts.in_use(client, one) == (one in after) for one in (None, "red", "blue"))
        assert set(salts.of(client)) == after
    assert sum(map(Counter.total, salts._in_use.values())) == len(salts._of_run)


def used(client: str, live: dict[tuple[str, str], str | None], last: dict[str, str | None]):
    found = {salt for (whose, _), salt in live.items() if whose == client}
    return found | ({last[client]} if client in last else set())
