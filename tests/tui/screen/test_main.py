"""Every key of the main screen does what the help says."""

import pytest
from support.frames import make_agent
from support.top_app import NARROW, ROOMY, WIDE, page, shown, text
from support.top_scene import frame_at, life
from support.top_sources import Scripted

from kvflow.tui.filter import parse
from kvflow.tui.options import ScreenOptions
from kvflow.tui.rows import Column, Sort
from kvflow.tui.screen.details import Details
from kvflow.tui.screen.help import Help
from kvflow.tui.screen.main import MainScreen
from kvflow.tui.screen.picture import Picture
from kvflow.tui.screen.table import Table
from kvflow.tui.source import Link, Status

FEW = life(3)


def displayed(pilot, name):
    return pilot.app.screen.query_one(f"#{name}").display


# Views and panels


@pytest.mark.parametrize(
    ("key", "panel"),
    [("1", "charts"), ("2", "agents"), ("3", "queue"), ("4", "evictions"), ("5", "machine")],
)
async def test_digit_shows_or_hides_its_panel(key, panel):
    async with shown(Scripted(FEW)) as pilot:
        before = displayed(pilot, panel)
        await pilot.press(key)
        assert displayed(pilot, panel) is not before
        await pilot.press(key)
        assert displayed(pilot, panel) is before


async def test_digit_where_it_is_narrow_shows_one_panel_instead_of_another():
    async with shown(Scripted(FEW), NARROW) as pilot:
        await pilot.press("2")
        assert "2 agents" in page(pilot)
        await pilot.press("4")
        assert "2 agents" not in page(pilot)
        assert "4 evictions" in page(pilot)
        await pilot.press("4")
        assert not displayed(pilot, "side")


async def test_panel_that_is_hidden_gives_its_focus_to_the_tree():
    async with shown(Scripted(FEW)) as pilot:
        pilot.app.screen.query_one("#evicted", Table).focus()
        await pilot.press("4")
        assert pilot.app.focused is pilot.app.screen.tree_view


async def test_agents_panel_is_named_after_the_only_client_whatever_its_name():
    agent = make_agent("[/b]/planner")
    async with shown(Scripted([frame_at(0, agents=(agent,))])) as pilot:
        assert "─ 2 agents of [/b] ─" in page(pilot)


async def test_names_give_a_terminal_no_orders():
    agent = make_agent("evil\x1b[2J/pla\x9bnner")
    frame = frame_at(0, agents=(agent,), model="m\x07odel")
    async with shown(Scripted([frame])) as pilot:
        assert "agents of evil\ufffd[2J" in page(pilot)
        assert "pla\ufffdnner" in page(pilot)
        assert "m\ufffdodel" in page(pilot)
        assert page(pilot).replace("\n", "").isprintable()


async def test_frame_that_changes_nothing_paints_nothing():
    async with shown(Scripted([frame_at(30)])) as pilot:
        pilot.app._store.apply(frame_at(30))
        pilot.app._show()
        await pilot.pause()
        screen = pilot.app.screen
        pilot.app._show()
        painted = {widget.id for widget in screen.walk_children() if widget._repaint_regions}
        assert painted == set()


async def test_tab_goes_through_the_panels():
    async with shown(Scripted(FEW)) as pilot:
        seen = []
        for _ in range(5):
            seen.append(pilot.app.focused.id)
            await pilot.press("tab")
        assert seen == ["tree", "agents-table", "prefetches", "waiting", "evicted"]


async def test_w_shows_the_workflow_instead_of_the_tree_and_back():
    async with shown(Scripted(FEW)) as pilot:
        await pilot.press("w")
        assert "4 live runs" in page(pilot)
        assert "radix tree" not in page(pilot)
        await pilot.press("w")
        assert "radix tree" in page(pilot)


async def test_capital_w_lets_charts_look_back_further():
    async with shown(Scripted(FEW)) as pilot:
        seen = []
        for _ in range(4):
            seen.append(pilot.app.screen.query_one("#link", Picture).border_subtitle)
            await pilot.press("W")
        assert seen == ["1 min", "5 min", "15 min", "1 min"]


async def test_resize_to_narrow_hides_the_panels_beside_the_tree():
    async with shown(Scripted(FEW)) as pilot:
        assert displayed(pilot, "side")
        await pilot.resize_terminal(*NARROW)
        assert not displayed(pilot, "side")
        assert not displayed(pilot, "charts")


async def test_big_figures_are_there_where_there_is_room():
    async with shown(Scripted(FEW), ROOMY) as pilot:
        assert "device hits" in page(pilot)
    async with shown(Scripted(FEW), NARROW) as pilot:
        assert "hits D " in page(pilot)
        assert "device hits" not in page(pilot)


# Filter


async def test_slash_filters_while_it_is_typed():
    async with shown(Scripted(FEW)) as pilot:
        await pilot.press("slash", *"state:host")
        assert {row.node.state for row in pilot.app.screen.rows if row.matched} == {"host"}
        await pilot.press("enter")
        assert pilot.app.focused is pilot.app.screen.tree_view
        assert "filter state:host" in page(pilot)


async def test_filter_that_makes_no_sense_shows_where_and_keeps_what_held():
    async with shown(Scripted(FEW)) as pilot:
        await pilot.press("slash", *"steps<2", "space", *"stepz<")
        assert "'stepz<'" in page(pilot)
        assert "did you mean steps<?" in page(pilot)
        assert pilot.app.screen.tree_view.shown.filter.text.startswith("steps<2")


async def test_filter_that_looks_like_markup_is_shown_as_it_was_typed():
    async with shown(Scripted(FEW)) as pilot:
        await pilot.press("slash", *"state:", "left_square_bracket", "slash", "a")
        await pilot.press("right_square_bracket")
        assert "[/a]" in text(pilot)[-2]


async def test_escape_while_typing_brings_back_the_filter_that_held():
    options = ScreenOptions(filter=parse("locked"))
    async with shown(Scripted(FEW), options=options) as pilot:
        await pilot.press("slash", *" tokens>1k", "escape")
        assert pilot.app.screen.tree_view.shown.filter.text == "locked"


async def test_escape_in_the_tree_clears_the_filter():
    async with shown(Scripted(FEW), options=ScreenOptions(filter=parse("locked"))) as pilot:
        assert "filter locked" in page(pilot)
        await pilot.press("escape")
        assert "filter locked" not in page(pilot)
        assert len(pilot.app.screen.rows) > 10


async def test_filter_that_nothing_matches_says_so():
    async with shown(Scripted(FEW), options=ScreenOptions(filter=parse("tokens>1g"))) as pilot:
        assert "no node matches the filter" in page(pilot)


@pytest.mark.parametrize("panel", ["w", "z"])
async def test_escape_goes_back_from_what_was_opened_last(panel):
    async with shown(Scripted(FEW)) as pilot:
        before = text(pilot)[:-1]  # without the footer, which comes a moment later
        await pilot.press(panel)
        await pilot.pause()
        assert text(pilot)[:-1] != before
        await pilot.press("escape")
        await pilot.pause()
        assert text(pilot)[:-1] == before


# Sort, list, follow


async def test_angle_brackets_sort_by_the_next_and_the_previous_column():
    async with shown(Scripted(FEW)) as pilot:
        await pilot.press("greater_than_sign")
        assert pilot.app.screen.tree_view.shown.sort == Sort(Column.TOKENS)
        assert "tokens▲" in page(pilot)
        await pilot.press("less_than_sign")
        assert pilot.app.screen.tree_view.shown.sort == Sort(Column.ID)


async def test_capital_i_turns_the_order_round():
    async with shown(Scripted(FEW)) as pilot:
        await pilot.press("I")
        assert pilot.app.screen.tree_view.shown.sort == Sort(Column.ID, descending=True)
        assert "node, prefix of▼" in page(pilot)


async def test_t_shows_a_list_and_the_tree_again():
    async with shown(Scripted(FEW)) as pilot:
        await pilot.press("t")
        assert {row.level for row in pilot.app.screen.rows} == {0}
        await pilot.press("t")
        assert {row.level for row in pilot.app.screen.rows} == {0, 1, 2}


async def test_capital_f_follows_the_selection():
    async with shown(Scripted(FEW)) as pilot:
        await pilot.press("F")
        assert pilot.app.screen.tree_view.follow
        assert "follow" in text(pilot)[2]


# Nodes


async def test_y_copies_the_id_of_the_node_under_the_cursor():
    async with shown(Scripted(FEW)) as pilot:
        await pilot.press("down", "y")
        assert pilot.app.clipboard == "10"


async def test_y_in_a_table_copies_the_id_of_its_row():
    async with shown(Scripted(FEW)) as pilot:
        await pilot.press("tab", "down", "y")
        assert pilot.app.clipboard == "13"


async def test_enter_on_an_eviction_explains_it():
    async with shown(Scripted(FEW)) as pilot:
        pilot.app.screen.query_one("#evicted", Table).focus()
        await pilot.press("enter")
        assert isinstance(pilot.app.screen, Details)
        assert "from the device" in page(pilot)


async def test_d_shows_details_as_enter_does():
    async with shown(Scripted(FEW)) as pilot:
        await pilot.press("d")
        assert isinstance(pilot.app.screen, Details)


@pytest.mark.parametrize("key", ["question_mark", "h", "f1"])
async def test_help_key_shows_every_key_until_it_is_closed(key):
    async with shown(Scripted(FEW), WIDE) as pilot:
        await pilot.press(key)
        assert isinstance(pilot.app.screen, Help)
        assert "turn the order round" in page(pilot)
        await pilot.press("escape")
        assert isinstance(pilot.app.screen, MainScreen)


# How the source stands


async def test_source_that_is_gone_is_said_on_top_with_a_hint_and_all_else_goes_on():
    status = Status(
        Link.DISCONNECTED, "DISCONNECTED (retry in 4 s)", "connection refused", "is it running?"
    )
    async with shown(Scripted(FEW, status)) as pilot:
        assert "DISCONNECTED (retry in 4 s)" in text(pilot)[0]
        assert "connection refused  hint: is it running?" in text(pilot)[1]
        await pilot.press("down", "t", "w")
        assert pilot.app.is_running


async def test_server_in_which_kvflow_failed_is_said_on_top():
    async with shown(Scripted([frame_at(0, degraded=True)])) as pilot:
        assert "kvflow has failed in this server" in text(pilot)[1]


async def test_tree_that_is_still_arriving_says_how_much_is_there():
    async with shown(Scripted([frame_at(0, nodes_left_out=True, tree_nodes=5000)])) as pilot:
        assert "nodes 13 of 5,000 so far" in page(pilot)


async def test_source_without_frames_says_that_it_waits():
    status = Status(Link.CONNECTING, "CONNECTING")
    async with shown(Scripted([], status)) as pilot:
        assert "CONNECTING" in text(pilot)[0]
        assert "no frame yet" in page(pilot)
