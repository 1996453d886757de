from kvflow.recipe.draw.channel import Net, route
from kvflow.recipe.draw.layout import Cell

A, B = Cell(0, "a"), Cell(0, "b")
UNDER = {A: range(1, 6), B: range(11, 16)}


def routed(*nets: Net) -> int:
    return route(nets, UNDER.__getitem__)


def test_route_single_target_below_the_source_is_straight() -> None:
    net = Net([A], [Cell(1, "x")], [4])
    assert routed(net) == 0
    assert net.ports == {A: 4}
    assert net.row is None


def test_route_target_beside_the_source_leaves_from_the_middle() -> None:
    net = Net([A], [Cell(1, "x")], [9])
    assert routed(net) == 1
    assert (net.ports, net.row) == ({A: 3}, 0)


def test_route_two_nets_of_one_source_leave_in_different_columns() -> None:
    left, right = Net([A], [Cell(1, "x")], [-9]), Net([A], [Cell(1, "y")], [9])
    routed(left, right)
    assert left.ports[A] < right.ports[A]


def test_route_column_of_another_target_is_left_free() -> None:
    one, two = Net([A, B], [Cell(1, "x")], [20]), Net([B], [Cell(1, "y")], [3])
    routed(one, two)
    assert one.ports[A] != 3


def test_route_level_parts_that_would_meet_take_different_rows() -> None:
    one, two = Net([A], [Cell(1, "x")], [13]), Net([B], [Cell(1, "y")], [3])
    assert routed(one, two) == 2
    assert one.row != two.row


def test_route_level_parts_apart_share_a_row() -> None:
    one, two = Net([A], [Cell(1, "x")], [0]), Net([B], [Cell(1, "y")], [20])
    assert routed(one, two) == 1
    assert one.row == two.row == 0
