import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.calm import calm
from support.frames import ROOT, make_frame, make_node, make_nodes

from kvflow.errors import UsageError
from kvflow.frames import Node, State
from kvflow.tui.filter import parse
from kvflow.tui.rows import Column, Row, Rows, Sort, View, flatten, keep_selection
from kvflow.tui.store import Store

VALUES = {
    Column.ID: lambda node: node.id,
    Column.TOKENS: lambda node: node.tokens,
    Column.DEPTH: lambda node: node.depth,
    Column.STATE: lambda node: list(State).index(node.state),
    Column.STEPS: lambda node: node.steps,
    Column.WHY: lambda node: node.why,
    Column.AGENTS: lambda node: node.agents,
    Column.LOCKS: lambda node: node.locks,
    Column.HITS: lambda node: node.hits,
    Column.USED: lambda node: -node.last_access,
}


def store_of(*nodes: Node) -> Store:
    store = Store()
    store.apply(make_frame(*nodes))
    return store


def listed(rows: Rows) -> list[tuple[int, int]]:
    return [(row.node.id, row.level) for row in rows]


def in_order(nodes: list[Node], sort: Sort) -> list[Node]:
    value = VALUES[sort.column]
    return sorted(nodes, key=lambda node: (value(node), node.id), reverse=sort.descending)


def drawn(nodes: list[Node], view: View, parent: int = ROOT, level: int = 0) -> list[Row]:
    """The rows of a tree by recursion, one parent after the other."""
    found = []
    for node in in_order([node for node in nodes if node.parent == parent], view.sort):
        below = drawn(nodes, view, node.id, level + 1)
        matched = view.filter.matches(node)
        if not matched and not any(row.matched for row in below_all(nodes, view, node.id)):
            continue
        has_children = any(one.parent == node.id for one in nodes)
        expanded = node.id not in view.collapsed if has_children else None
        found.append(Row(node, level, expanded, matched, False, None))
        found += below if expanded else []
    return found


def below_all(nodes: list[Node], view: View, parent: int) -> list[Row]:
    return drawn(nodes, View(filter=view.filter), parent)


views = st.builds(
    View,
    filter=st.sampled_from(["", "state:host", "steps<4 tokens>100", "locked", "!locked"]).map(
        parse
    ),
    sort=st.builds(Sort, st.sampled_from(Column), st.booleans()),
    collapsed=st.frozensets(st.integers(1, 25), max_size=4),
)


@calm
@given(st.integers(0, 25), st.integers(0, 99), views)
def test_rows_of_a_tree_are_those_of_a_plain_recursion(count: int, seed: int, view: View) -> None:
    nodes = make_nodes(count, seed)
    assert list(flatten(store_of(*nodes), view)) == drawn(nodes, view)


@calm
@given(st.integers(0, 25), st.integers(0, 99), views)
def test_rows_of_a_list_are_the_matching_nodes_in_order(count: int, seed: int, view: View) -> None:
    nodes = make_nodes(count, seed)
    flat = View(view.filter, view.sort, flat=True, collapsed=view.collapsed)
    matching = [node for node in nodes if view.filter.matches(node)]
    assert list(flatten(store_of(*nodes), flat)) == [
        Row(node, 0, None, True, False, None) for node in in_order(matching, view.sort)
    ]


def test_rows_of_a_chain_longer_than_the_stack_are_all_there() -> None:
    nodes = [make_node(1), *(make_node(one, one - 1) for one in range(2, 5001))]
    rows = flatten(store_of(*nodes), View(filter=parse("id=5000")))
    assert len(rows) == 5000
    assert (rows[-1].level, rows[-1].matched, rows[0].matched) == (4999, True, False)


def test_rows_show_a_ghost_where_it_was() -> None:
    store = store_of(make_node(1), make_node(2, 1), make_node(3))
    store.apply(make_frame(make_node(4, 1), delta_since=1, gone=(2,)))
    rows = flatten(store, View())
    assert listed(rows) == [(1, 0), (2, 1), (4, 1), (3, 0)]
    assert [row.ghost for row in rows] == [False, True, False, False]


def test_rows_leave_out_ghosts_that_do_not_match_are_collapsed_or_are_no_tree() -> None:
    store = store_of(make_node(1), make_node(2, 1, hits=5))
    store.apply(make_frame(delta_since=1, gone=(2,)))
    for view in (View(filter=parse("hits<5")), View(collapsed={1}), View(flat=True)):
        assert listed(flatten(store, view)) == [(1, 0)]
    assert listed(flatten(store, View(filter=parse("hits=5")))) == []


def test_rows_show_ghosts_of_topmost_nodes_first() -> None:
    store = store_of(make_node(1), make_node(2))
    store.apply(make_frame(delta_since=1, gone=(2,)))
    assert listed(flatten(store, View())) == [(2, 0), (1, 0)]


def test_rows_by_use_begin_with_the_node_that_was_used_last() -> None:
    nodes = (make_node(1, last_access=5.0), make_node(2, last_access=9.0))
    assert listed(flatten(store_of(*nodes), View(sort=Sort(Column.USED)))) == [(2, 0), (1, 0)]


def test_row_tells_when_its_node_changed() -> None:
    store = store_of(make_node(1), make_node(2))
    store.apply(make_frame(make_node(2, hits=1), delta_since=1))
    assert [row.freshness for row in flatten(store, View())] == [None, 0]


def test_rows_can_be_cut_out_and_found() -> None:
    rows = flatten(store_of(*(make_node(one) for one in range(1, 9))), View())
    assert listed(rows[2:4]) == [(3, 0), (4, 0)]
    assert (rows.place(5), rows.id_at(4), rows.place(99)) == (4, 5, None)


def test_selection_stays_on_its_node_wherever_that_goes() -> None:
    store = store_of(make_node(5), make_node(6))
    before = flatten(store, View())
    store.apply(make_frame(make_node(1), make_node(2), delta_since=1))
    assert keep_selection(before, 6, flatten(store, View())) == 3


@pytest.mark.parametrize(("selected", "place"), [(1, 0), (2, 1), (3, 1)])
def test_selection_of_a_node_that_is_hidden_goes_to_what_took_its_place(
    selected: int, place: int
) -> None:
    store = store_of(make_node(1), make_node(2), make_node(3))
    before = flatten(store, View())
    left = {1: "id>1", 2: "!id=2", 3: "id<3"}[selected]
    assert keep_selection(before, selected, flatten(store, View(filter=parse(left)))) == place


def test_selection_in_nothing_is_none() -> None:
    before = flatten(store_of(make_node(1)), View())
    assert keep_selection(before, 1, flatten(Store(), View())) is None


@pytest.mark.parametrize(
    ("text", "sort"),
    [
        ("steps", Sort(Column.STEPS)),
        ("-Tokens", Sort(Column.TOKENS, descending=True)),
        (" id ", Sort(Column.ID)),
    ],
)
def test_sort_is_read_from_text(text: str, sort: Sort) -> None:
    assert Sort.parse(text) == sort


def test_sort_by_no_column_says_which_there_are() -> None:
    with pytest.raises(UsageError) as refusal:
        Sort.parse("-stpes")
    assert refusal.value.what == "cannot sort by '-stpes'"
    assert "id, tokens, depth" in refusal.value.why
    assert refusal.value.hint == "did you mean steps?"


def test_sort_goes_from_column_to_column_and_round() -> None:
    sort = Sort(Column.USED, descending=True)
    assert sort.by(1) == Sort(Column.ID, descending=True)
    assert sort.by(1).by(-1) == sort
    assert sort.turned() == Sort(Column.USED)
