import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.calm import calm
from support.frames import make_frame, make_node, make_nodes

from kvflow.frames import Node, State, Why
from kvflow.tui.forecast import Forecast, Tier, Turn, tier_of
from kvflow.tui.tree import Tree

ON_DEVICE = {State.DEVICE, State.MIRRORED, State.OFFLOADING}


def tree_of(*nodes: Node) -> Tree:
    tree = Tree()
    tree.apply(make_frame(*nodes))
    return tree


def goes_first(node: Node) -> tuple[bool, int, float, int]:
    """Spent first, then far first, then least recently used."""
    if node.why is Why.ACCESS:
        return True, 0, node.last_access, node.id
    return node.why is not Why.SPENT, -node.steps, node.last_access, node.id


def victims(nodes: list[Node], tier: Tier, spare: int | None) -> list[Node]:
    """Evict one leaf after the other, looking at all nodes each time."""
    states = ON_DEVICE if tier is Tier.DEVICE else {State.HOST}
    left, gone = list(nodes), []
    while True:
        holders = [one for one in left if tier is Tier.HOST or one.state is not State.HOST]
        parents = {node.parent for node in holders}
        leaves = [
            node
            for node in left
            if node.state in states and not node.locks and node.id not in parents
        ]
        if not leaves:
            return gone
        if spare is not None and spare <= 0:
            leaves = [one for one in leaves if one.why is not Why.UNTAGGED] or leaves
        victim = min(leaves, key=goes_first)
        if spare is not None and victim.why is Why.UNTAGGED:
            spare -= victim.tokens
        left.remove(victim)
        gone.append(victim)


@calm
@given(
    count=st.integers(0, 30),
    seed=st.integers(0, 999),
    tier=st.sampled_from(Tier),
    spare=st.none() | st.integers(-10, 300),
)
def test_forecast_is_what_evicting_leaf_after_leaf_gives(
    count: int, seed: int, tier: Tier, spare: int | None
) -> None:
    nodes = make_nodes(count, seed)
    expected, tokens = {}, 0
    for place, node in enumerate(victims(nodes, tier, spare if tier is Tier.DEVICE else None)):
        expected[node.id] = Turn(place, tokens)
        tokens += node.tokens
    assert Forecast(tree_of(*nodes), tier, spare).turns == expected


def test_forecast_in_mode_off_goes_by_access_alone() -> None:
    nodes = [
        make_node(one, why=Why.ACCESS, steps=steps, last_access=access)
        for one, steps, access in ((1, 0, 5.0), (2, 9, 7.0), (3, 64, 6.0))
    ]
    assert list(Forecast(tree_of(*nodes), Tier.DEVICE).turns) == [1, 3, 2]


def test_forecast_gives_no_turn_to_what_is_in_use_or_above_it() -> None:
    tree = tree_of(make_node(1), make_node(2, 1, locks=1), make_node(3, 1))
    assert set(Forecast(tree, Tier.DEVICE).turns) == {3}


def test_forecast_lets_a_node_go_whose_children_are_on_the_host() -> None:
    tree = tree_of(make_node(1), make_node(2, 1, state=State.HOST))
    assert set(Forecast(tree, Tier.DEVICE).turns) == {1}


def test_forecast_ends_though_parents_go_in_circles() -> None:
    tree = tree_of(make_node(1, 2), make_node(2, 1), make_node(3, 3))
    assert Forecast(tree, Tier.DEVICE).turns == {}


@pytest.mark.parametrize("state", State)
def test_tier_that_a_node_would_leave_is_the_host_if_it_is_nowhere_else(state: State) -> None:
    expected = Tier.HOST if state is State.HOST else Tier.DEVICE
    assert tier_of(make_node(1, state=state)) is expected


def test_forecast_spares_untagged_kv_that_the_engine_spares() -> None:
    plain = make_node(1, why=Why.UNTAGGED, steps=4, tokens=10)
    prefix = make_node(2, why=Why.STEPS, steps=2, tokens=10)
    assert list(Forecast(tree_of(plain, prefix), Tier.DEVICE).turns) == [1, 2]
    assert list(Forecast(tree_of(plain, prefix), Tier.DEVICE, spare=0).turns) == [2, 1]
