"""The tree is moved in by keys, and keeps what a person chose while the server goes on."""

import pytest
from support.top_app import NARROW, page, shown, text
from support.top_scene import ROOT, frame_at, large_frame, life, node
from support.top_sources import Scripted

from kvflow.tui.filter import parse
from kvflow.tui.options import ScreenOptions

FEW = life(3)
CHAIN = tuple(node(10 + place, 9 + place if place else ROOT) for place in range(2000))


def tree(pilot):
    return pilot.app.screen.tree_view


def ids(pilot):
    return [row.node.id for row in tree(pilot).rows]


async def next_frame(pilot, frame):
    pilot.app._store.apply(frame)
    pilot.app._show()
    await pilot.pause()


# Moving


@pytest.mark.parametrize(
    ("keys", "index"),
    [
        (["down", "down"], 2),
        (["j", "j", "k"], 1),
        (["up"], 0),
        (["end"], 299),
        (["G", "up"], 298),
        (["end", "home"], 0),
        (["end", "g"], 0),
        (["pagedown"], 16),
        (["ctrl+f", "ctrl+f"], 32),
        (["pagedown", "pageup"], 0),
        (["pagedown", "ctrl+b"], 0),
    ],
)
async def test_cursor_goes_where_keys_say_and_is_on_the_screen(keys, index):
    async with shown(Scripted([large_frame(300)]), NARROW) as pilot:
        await pilot.press(*keys)
        await pilot.pause()
        assert tree(pilot).cursor == index
        assert f"#{tree(pilot).selected} " in page(pilot)


async def test_right_goes_down_a_level_and_left_back_up():
    async with shown(Scripted(FEW)) as pilot:
        await pilot.press("right")
        assert tree(pilot).selected == 10
        await pilot.press("left", "left")
        assert tree(pilot).selected == 2


async def test_left_collapses_and_right_expands():
    async with shown(Scripted(FEW)) as pilot:
        before = ids(pilot)
        await pilot.press("left")
        assert ids(pilot) == [2]
        await pilot.press("right")
        assert ids(pilot) == before


async def test_space_folds_and_unfolds():
    async with shown(Scripted(FEW)) as pilot:
        before = ids(pilot)
        await pilot.press("space")
        assert ids(pilot) == [2]
        await pilot.press("space")
        assert ids(pilot) == before


async def test_asterisk_and_capital_c_unfold_and_fold_all_below():
    async with shown(Scripted(FEW)) as pilot:
        before = ids(pilot)
        await pilot.press("C", "right")
        assert ids(pilot) == [2, 10, 11, 12, 13]
        await pilot.press("asterisk")
        assert ids(pilot) == before


async def test_n_goes_to_the_next_match_and_capital_n_to_the_one_before():
    options = ScreenOptions(filter=parse("agent:e !agent:planner"))
    async with shown(Scripted(FEW), options=options) as pilot:
        seen = []
        for key in ("n", "n", "N", "n", "n", "n"):
            await pilot.press(key)
            seen.append(tree(pilot).selected)
        assert seen == [11, 12, 11, 12, 13, 11]


async def test_click_moves_the_cursor_and_a_second_one_shows_details():
    async with shown(Scripted(FEW), NARROW) as pilot:
        await pilot.click(tree(pilot), offset=(10, 3))
        assert tree(pilot).cursor == 1
        await pilot.click(tree(pilot), offset=(10, 3), times=2)
        await pilot.pause()
        assert "node #10" in page(pilot)


async def test_click_on_the_header_moves_nothing():
    async with shown(Scripted(FEW), NARROW) as pilot:
        await pilot.press("down")
        await pilot.click(tree(pilot), offset=(10, 1))
        assert tree(pilot).cursor == 1


# While the server goes on


async def test_selection_stays_with_its_node_when_rows_appear_above():
    nodes = tuple(node(number) for number in range(50, 90))
    async with shown(Scripted([frame_at(0, nodes=nodes)])) as pilot:
        await pilot.press(*["down"] * 5)
        await next_frame(pilot, frame_at(1, nodes=(node(7), node(8), *nodes)))
        assert tree(pilot).selected == 55
        assert tree(pilot).cursor == 7


async def test_follow_keeps_the_selected_node_on_its_line():
    nodes = tuple(node(number) for number in range(100, 200))
    async with shown(Scripted([frame_at(0, nodes=nodes)])) as pilot:
        await pilot.press(*["pagedown"] * 3, "F")
        await pilot.pause()
        line = next(y for y, one in enumerate(text(pilot)) if f"#{tree(pilot).selected} " in one)
        more = tuple(node(number) for number in range(50, 61))
        await next_frame(pilot, frame_at(1, nodes=(*more, *nodes)))
        assert f"#{tree(pilot).selected} " in text(pilot)[line]


async def test_node_that_left_is_shown_as_a_ghost_for_two_frames():
    async with shown(Scripted([frame_at(0, nodes=(node(5), node(6)))])) as pilot:
        marks = []
        for moment in range(1, 4):
            await next_frame(pilot, frame_at(moment, nodes=(node(5),)))
            marks.append("· x" in page(pilot))
        assert marks == [True, True, False]


async def test_node_that_changed_is_marked_for_two_frames():
    async with shown(Scripted([frame_at(0, nodes=(node(5), node(6)))])) as pilot:
        marks = []
        for moment in range(1, 4):
            await next_frame(pilot, frame_at(moment, nodes=(node(5), node(6, hits=3))))
            marks.append(tree(pilot).row_component(1))
        assert marks == ["line--changed", "line--changed", None]


async def test_fold_stays_while_the_server_goes_on():
    async with shown(Scripted(FEW)) as pilot:
        await pilot.press("left")
        await next_frame(pilot, frame_at(3))
        assert ids(pilot) == [2]


# While the tree comes anew, in parts

HUNDRED = tuple(node(number) for number in range(100, 200))


async def come_anew(pilot, *parts, complete=True):
    """A frame without a node, as after a long silence; then so many nodes at a time."""
    await next_frame(pilot, frame_at(1, nodes=(), nodes_left_out=True))
    for moment, nodes in enumerate(parts, start=2):
        left_out = not complete or moment <= len(parts)
        part = frame_at(moment, nodes=nodes, delta_since=moment, nodes_left_out=left_out)
        await next_frame(pilot, part)


@pytest.mark.parametrize("keys", [[], ["F"]], ids=["", "followed"])
async def test_selection_is_back_on_its_line_when_the_tree_has_come_anew(keys):
    async with shown(Scripted([frame_at(0, nodes=HUNDRED)])) as pilot:
        await pilot.press(*["pagedown"] * 3, *keys)
        await pilot.pause()
        selected = tree(pilot).selected
        line = next(y for y, one in enumerate(text(pilot)) if f"#{selected} " in one)
        await come_anew(pilot, HUNDRED[60:], HUNDRED[:10], HUNDRED[10:])
        assert tree(pilot).selected == selected
        assert f"#{selected} " in text(pilot)[line]


async def test_selected_node_that_does_not_come_again_hands_on_to_the_row_in_its_place():
    async with shown(Scripted([frame_at(0, nodes=HUNDRED)])) as pilot:
        await pilot.press(*["down"] * 5)
        await come_anew(pilot, HUNDRED[:3], (*HUNDRED[3:5], *HUNDRED[6:]))
        assert (tree(pilot).selected, tree(pilot).cursor) == (106, 5)


async def test_selection_that_a_person_makes_while_the_tree_comes_anew_is_kept():
    async with shown(Scripted([frame_at(0, nodes=HUNDRED)])) as pilot:
        await pilot.press(*["down"] * 5)
        await come_anew(pilot, HUNDRED[:3], complete=False)
        await pilot.press("down")
        await next_frame(pilot, frame_at(3, nodes=HUNDRED[3:], delta_since=3))
        assert tree(pilot).selected == 101


# A server that was started anew


async def test_fold_does_not_pass_to_the_same_number_of_a_restarted_server():
    async with shown(Scripted(FEW)) as pilot:
        await pilot.press("left")
        await next_frame(pilot, frame_at(3, boot="two"))
        assert ids(pilot)[:2] == [2, 10]


async def test_selection_does_not_pass_to_the_same_number_of_a_restarted_server():
    async with shown(Scripted([frame_at(0, nodes=HUNDRED)])) as pilot:
        await pilot.press("end")
        await pilot.pause()
        await next_frame(pilot, frame_at(1, nodes=HUNDRED, boot="two"))
        assert tree(pilot).selected == 100
        assert "#100 " in page(pilot)


# Size


async def test_tree_of_50000_nodes_draws_only_what_is_on_the_screen():
    async with shown(Scripted([large_frame(50_000)]), NARROW) as pilot:
        drawn = []
        draw = tree(pilot).row_line
        tree(pilot).row_line = lambda index, placed: drawn.append(index) or draw(index, placed)
        await pilot.press("end", "pageup", "home")
        await pilot.pause()
        assert len(tree(pilot).rows) == 50_000
        assert 0 < len(set(drawn)) <= 4 * 24


async def test_chain_of_2000_nodes_is_shown_to_its_end():
    async with shown(Scripted([frame_at(0, nodes=CHAIN)]), NARROW) as pilot:
        await pilot.press("end")
        await pilot.pause()
        assert "»1999" in text(pilot)[-3]


async def test_row_that_has_not_changed_is_not_painted_again():
    async with shown(Scripted([frame_at(0, nodes=(node(5), node(6)))])) as pilot:
        painted = []
        paint = tree(pilot).render_line
        tree(pilot).render_line = lambda y: painted.append(y) or paint(y)
        await next_frame(pilot, frame_at(0, seq=2, nodes=(node(5), node(6, hits=3))))
        assert painted == [2]
