from hypothesis import given
from hypothesis import strategies as st
from support.calm import calm
from support.frames import ROOT, make_frame, make_node

from kvflow.frames import Frame, Node
from kvflow.tui.tree import Tree

ids = st.integers(1, 12)
# Anything that a server might say, trees or not: parents may be unknown, or go in circles.
nodes = st.builds(
    lambda node_id, parent, tokens: make_node(node_id, parent, tokens=tokens),
    ids,
    st.integers(ROOT, 12),
    st.integers(1, 3),
)
node_lists = st.lists(nodes, max_size=8, unique_by=lambda node: node.id)


@st.composite
def frames(draw: st.DrawFn) -> Frame:
    if draw(st.booleans()):
        return make_frame(*draw(node_lists), delta_since=1, gone=tuple(draw(st.lists(ids))))
    return make_frame(*draw(node_lists), nodes_left_out=draw(st.booleans()))


def told(known: dict[int, Node], frame: Frame) -> dict[int, Node]:
    """What is known after a frame, by the words of the schema."""
    stays = {} if frame.delta_since is None else known
    stays = {node_id: node for node_id, node in stays.items() if node_id not in frame.gone}
    return stays | {node.id: node for node in frame.nodes}


def children_of(known: dict[int, Node], parent: int) -> set[int]:
    return {node.id for node in known.values() if node.parent == parent}


@calm
@given(st.lists(frames(), max_size=6))
def test_tree_after_any_frames_has_the_nodes_and_links_that_were_told(history: list[Frame]) -> None:
    tree, known = Tree(), {}
    for frame in history:
        known = told(known, frame)
        tree.apply(frame)
    assert tree.nodes == known
    for parent in range(ROOT, 13):
        assert set(tree.children(parent)) == children_of(known, parent)
    assert set(tree.tops()) == {one for one in known if known[one].parent not in known}


@calm
@given(st.lists(frames(), min_size=1, max_size=6))
def test_change_of_a_frame_leads_from_what_was_known_to_what_is(history: list[Frame]) -> None:
    tree, known = Tree(), {}
    for frame in history:
        change = tree.apply(frame)
        now = told(known, frame)
        left = {node.id: node for node in change.gone}
        assert left.keys() >= known.keys() - now.keys()
        assert all(known[one] == node for one, node in left.items())
        was = {one: node for one, node in known.items() if one not in left}
        assert change.before == {
            one: was.get(one) for one, node in now.items() if was.get(one) != node
        }
        known = now


@calm
@given(node_lists)
def test_walks_end_whatever_the_parents_are(some: list[Node]) -> None:
    tree = Tree()
    tree.apply(make_frame(*some))
    for node in some:
        path = tree.path(node.id)
        assert path[-1] == node
        assert len({one.id for one in path}) == len(path)
        below = [one.id for one in tree.below(node.id)]
        assert len(set(below)) == len(below)
        assert node.id not in below
        assert {one.id for one in some if node in tree.path(one.id)[:-1]} <= {*below, node.id}


def test_path_goes_from_the_top_to_the_node() -> None:
    tree = Tree()
    tree.apply(make_frame(make_node(3, 2), make_node(2, 1), make_node(1)))
    assert [node.id for node in tree.path(3)] == [1, 2, 3]
    assert tree.path(99) == []


def test_tree_is_complete_when_nothing_is_left_out() -> None:
    tree = Tree()
    tree.apply(make_frame(make_node(1), nodes_left_out=True))
    assert not tree.complete
    tree.apply(make_frame(make_node(2), delta_since=1))
    assert tree.complete
    assert set(tree.nodes) == {1, 2}


def test_child_that_comes_before_its_parent_is_shown_below_it_then() -> None:
    tree = Tree()
    tree.apply(make_frame(make_node(2, 1), nodes_left_out=True))
    assert tree.tops() == [2]
    tree.apply(make_frame(make_node(1), delta_since=1))
    assert (tree.tops(), list(tree.children(1))) == ([1], [2])


def test_copy_stays_as_it_was() -> None:
    tree = Tree()
    tree.apply(make_frame(make_node(1), make_node(2, 1)))
    copied = tree.copy()
    tree.apply(make_frame(make_node(3, 2), delta_since=1, gone=(1,)))
    assert set(copied.nodes) == {1, 2}
    assert (copied.tops(), list(copied.children(1)), list(copied.children(2))) == ([1], [2], [])
