from hypothesis import given
from hypothesis import strategies as st
from support.calm import calm

from kvflow.engine.marks import Marks, Owner, Prefix, Prefixes

OWNERS = [("app", "planner"), ("app", "writer"), ("other", "planner")]


def pairs(marks: Marks[Owner, int]) -> list[tuple[Owner, int]]:
    return [(owner, mark) for owner in marks for mark in marks.of(owner)]


def test_of_gives_an_owners_marks_oldest_first():
    marks: Marks[Owner, str] = Marks()
    for mark in ("x", "a", "x", "m"):
        marks.add(OWNERS[0], mark)
    marks.add(OWNERS[1], "b")
    assert list(marks.of(OWNERS[0])) == ["x", "a", "m"]
    assert list(marks.of(OWNERS[2])) == []


def test_clear_forgets_all_marks():
    marks: Marks[Owner, str] = Marks()
    marks.add(OWNERS[0], "x")
    marks.clear()
    assert len(marks) == 0
    assert list(marks) == []


@calm
@given(
    events=st.lists(
        st.tuples(st.sampled_from(OWNERS), st.integers(0, 300)) | st.sets(st.integers(0, 300)),
        max_size=300,
    )
)
def test_keep_only_drops_nothing_that_stands_and_bounds_the_rest(events):
    """An event adds a mark, which then stands, or says which marks have left the tree."""
    marks: Marks[Owner, int] = Marks()
    standing: dict[tuple[tuple[str, str], int], None] = {}
    most_standing = 0
    for event in events:
        if isinstance(event, set):
            standing = {known: None for known in standing if known[1] not in event}
            continue
        marks.add(*event)
        standing[event] = None
        most_standing = max(most_standing, len(standing))
        now = {mark for _, mark in standing}
        marks.keep_only(now.__contains__)
        assert set(standing) <= set(pairs(marks))
        assert len(marks) == len(pairs(marks)) <= 2 * most_standing + 64


def test_keep_only_removes_owners_that_have_no_marks_left():
    marks: Marks[Owner, int] = Marks()
    for mark in range(64):
        marks.add(OWNERS[0], mark)
    marks.add(OWNERS[1], -1)
    marks.keep_only(lambda mark: mark == -1)
    assert pairs(marks) == [(OWNERS[1], -1)]


def test_keep_only_does_not_look_while_there_are_few():
    marks: Marks[Owner, int] = Marks()
    marks.add(OWNERS[0], 1)
    marks.keep_only(lambda _: False)
    assert list(marks.of(OWNERS[0])) == [1]


def test_crowd_out_forgets_the_oldest_but_for_owners_that_are_needed():
    marks: Marks[Owner, int] = Marks()
    for mark in range(6):
        marks.add(OWNERS[mark % 2], mark)
    assert marks.crowd_out(4, lambda owner: owner == OWNERS[0]) == [1, 3]
    assert marks.crowd_out(4, lambda _: False) == []
    assert set(pairs(marks)) == {(OWNERS[0], 0), (OWNERS[0], 2), (OWNERS[0], 4), (OWNERS[1], 5)}
    assert len(marks) == 4


def test_crowd_out_looks_at_a_few_only():
    marks: Marks[Owner, int] = Marks()
    for mark in range(100):
        marks.add((str(mark), ""), mark)
    assert len(marks.crowd_out(0, lambda _: False)) == 4
    looks: list[object] = []
    assert marks.crowd_out(0, lambda owner: looks.append(owner) or True) == []
    assert len(looks) == 4


def test_prefixes_are_found_by_speaker_and_by_tenant_until_they_are_crowded_out():
    prefixes = Prefixes()
    red, blue = (Prefix("app", "planner", None, salt) for salt in ("red", "blue"))
    other = Prefix("app", "writer", None, "red")
    for prefix in (red, blue, other):
        prefixes.add(prefix)
    assert list(prefixes.of(("app", "planner"), ["blue", "green", "red"])) == [blue, red]
    assert list(prefixes.of(("app", "planner"), ["green"])) == []
    assert list(prefixes.of_tenant("app", "red")) == [red, other]
    assert set(prefixes.agents()) == {("app", "planner"), ("app", "writer")}
    assert prefixes.crowd_out(2, lambda _: False) == [red]
    assert list(prefixes.of_tenant("app", "red")) == [other]


def test_prefixes_of_a_needed_agents_other_tenants_are_crowded_out():
    prefixes = Prefixes()
    for salt in ("red", "blue"):
        prefixes.add(Prefix("app", "planner", None, salt))
    assert prefixes.crowd_out(1, lambda one: one.cache_salt == "red") == [
        Prefix("app", "planner", None, "blue")
    ]
