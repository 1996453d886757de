from hypothesis import given
from hypothesis import strategies as st

from kvflow.policy.prefetch import Candidate, Cuts, Victim, has_room, in_order
from kvflow.policy.rank import KEPT, SPENT

candidates = st.lists(
    st.builds(
        Candidate,
        st.integers(0, 3),
        st.integers(1, 4),
        st.integers(1, 100),
        st.integers(0, 50),
        st.just(("", "")),
    ),
    unique_by=lambda one: one.node,
)


def victim(tokens: int, steps: int, *, spent: bool = False, age: float = 0.0) -> Victim:
    return Victim(tokens, (SPENT if spent else KEPT, -steps, age, 1))


def test_order_puts_the_nearest_first_then_the_most_shared_then_the_shortest():
    near = Candidate(steps=1, waiting=1, tokens=900, node=1, owner=("", ""))
    shared = Candidate(steps=2, waiting=3, tokens=900, node=2, owner=("", ""))
    short = Candidate(steps=2, waiting=1, tokens=10, node=3, owner=("", ""))
    long = Candidate(steps=2, waiting=1, tokens=20, node=4, owner=("", ""))
    assert in_order([long, short, shared, near]) == [near, shared, short, long]


@given(candidates)
def test_order_does_not_depend_on_the_order_in_which_they_were_found(found):
    assert in_order(found) == in_order(list(reversed(found)))


def test_room_is_free_slots_beyond_the_reserve():
    one = Candidate(steps=1, waiting=1, tokens=100, node=1, owner=("", ""))
    assert has_room(one, free=150, reserve=50, victims=[])
    assert not has_room(one, free=149, reserve=50, victims=[])


def test_room_is_made_by_spent_and_farther_nodes():
    one = Candidate(steps=1, waiting=1, tokens=100, node=1, owner=("", ""))
    assert has_room(one, 0, 0, [victim(60, 4, spent=True), victim(40, 2)])
    assert not has_room(one, 0, 0, [victim(60, 4, spent=True), victim(39, 2)])


def test_room_is_never_made_by_what_is_needed_as_soon():
    one = Candidate(steps=2, waiting=1, tokens=10, node=1, owner=("", ""))
    assert not has_room(one, 0, 0, [victim(100, 2)])
    assert not has_room(one, 0, 0, [victim(100, 1)])


def test_room_looks_no_further_than_it_must():
    def endless():
        while True:
            yield victim(10, 9)

    assert has_room(Candidate(1, 1, 100, 1, ("", "")), free=0, reserve=0, victims=endless())


def test_room_for_a_near_prefix_stops_at_the_first_that_is_as_near():
    seen = []

    def watched():
        for steps in (9, 1, 8):
            seen.append(steps)
            yield victim(10, steps)

    assert not has_room(Candidate(1, 1, 100, 1, ("", "")), free=0, reserve=0, victims=watched())
    assert seen == [9, 1]


pages = st.sampled_from([1, 16, 64])
lengths = st.integers(1, 300)
amounts = st.integers(1, 1 << 14)


@given(pages, lengths, st.integers(0, 299), amounts)
def test_cut_down_is_a_page_at_least_and_no_more_than_fits(page, length, there, most):
    length, there = length * page, min(there, length - 1) * page
    tokens = Cuts(length, page).down(there, most)
    assert tokens % page == 0
    assert page <= tokens <= max(page, most)


@given(pages, lengths, st.integers(0, 299), amounts)
def test_cut_up_is_enough_and_never_more_than_the_rest(page, length, there, tokens):
    length, there = length * page, min(there, length - 1) * page
    loaded = Cuts(length, page).up(there, tokens)
    assert loaded % page == 0
    assert min(tokens, length - there) <= loaded <= length - there


@given(pages, st.integers(16, 300), st.lists(st.integers(1000, 1999), max_size=40))
def test_prefix_is_cut_in_the_same_few_places_however_much_is_loaded_at_once(page, pages, mosts):
    length = pages * page
    cuts, there, places = Cuts(length, page), 0, set()
    for most in mosts:
        there += min(cuts.down(there, most), length - there)
        places.add(there)
        there %= length
    assert len(places) <= 2 * 8 + 2 * (length // 1000) + 1
