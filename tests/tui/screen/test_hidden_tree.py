"""A tree that is not on the screen does no work, and knows all when it is asked or shown again."""

import pytest
from support.top_app import page, shown, text
from support.top_scene import frame_at, life, node
from support.top_sources import Scripted

from kvflow.tui.screen.picture import Picture

MANY = tuple(node(number) for number in range(5, 60))
FEW = tuple(node(number) for number in range(5, 9))


async def next_frame(pilot, frame):
    pilot.app._store.apply(frame)
    pilot.app._show()
    await pilot.pause()


def ids(pilot):
    return [row.node.id for row in pilot.app.screen.rows]


async def shrink(pilot, **other):
    """Nearly all nodes leave, and the last ghost with them."""
    for moment in range(1, 5):
        await next_frame(pilot, frame_at(moment, nodes=FEW, **other))


@pytest.mark.parametrize("other", [{}, {"boot": "two"}], ids=["same server", "server anew"])
@pytest.mark.parametrize(
    ("hide", "bring_back"),
    [(["w"], ["w"]), (["w"], ["escape"]), (["tab", "z"], ["z"]), (["tab", "z"], ["escape"])],
)
async def test_tree_that_lost_nodes_while_it_was_hidden_is_shown_as_it_is_now(
    hide, bring_back, other
):
    async with shown(Scripted([frame_at(0, nodes=MANY)])) as pilot:
        await pilot.press(*hide)
        await shrink(pilot, **other)
        await pilot.press(*bring_back)
        await pilot.pause()
        assert "#8 " in page(pilot)
        assert "#40 " not in page(pilot)


async def test_rows_of_a_hidden_tree_are_those_of_now():
    async with shown(Scripted([frame_at(0, nodes=MANY)])) as pilot:
        await pilot.press("w")
        await shrink(pilot)
        assert ids(pilot) == [5, 6, 7, 8]


async def test_rows_of_a_hidden_tree_are_those_that_a_pause_holds():
    async with shown(Scripted([frame_at(0, nodes=MANY)])) as pilot:
        await pilot.press("w", "p")
        await shrink(pilot)
        assert ids(pilot) == list(range(5, 60))


async def test_hidden_tree_costs_nothing():
    async with shown(Scripted([frame_at(0, nodes=MANY)])) as pilot:
        await pilot.press("w")
        before = pilot.app.screen.tree_view._rows
        await shrink(pilot)
        assert pilot.app.screen.tree_view._rows is before


@pytest.mark.parametrize("hide", [["w"], ["tab", "z"]])
async def test_hidden_tree_loses_the_focus_in_peace_whatever_has_left(hide):
    async with shown(Scripted([frame_at(0, nodes=MANY)])) as pilot:
        await pilot.press(*hide)
        await shrink(pilot)
        pilot.app.screen.tree_view.on_blur()
        assert ids(pilot) == [5, 6, 7, 8]


@pytest.mark.parametrize("last", ["escape", "enter"])
async def test_filter_that_was_typed_over_the_workflow_gives_it_the_focus_back(last):
    async with shown(Scripted(life(3))) as pilot:
        await pilot.press("w", "slash", *"locked", last)
        await pilot.pause()
        assert pilot.app.focused is pilot.app.screen.query_one("#workflow", Picture)


async def test_filter_that_was_typed_over_a_maximised_panel_gives_it_the_focus_back():
    async with shown(Scripted(life(3))) as pilot:
        await pilot.press("tab", "z", "slash", "escape")
        await pilot.pause()
        assert pilot.app.focused.id == "agents-table"


async def test_panel_that_is_hidden_beside_the_workflow_gives_it_the_focus():
    async with shown(Scripted(life(3))) as pilot:
        await pilot.press("w", "tab", "2")
        await pilot.pause()
        assert pilot.app.focused is pilot.app.screen.query_one("#workflow", Picture)


async def test_filter_that_was_typed_over_the_workflow_holds_in_the_tree():
    async with shown(Scripted([frame_at(0, nodes=MANY)])) as pilot:
        await pilot.press("w")
        await shrink(pilot)
        await pilot.press("slash", *"tokens>1k", "enter", "w")
        await pilot.pause()
        assert "no node matches the filter" in "\n".join(text(pilot))
