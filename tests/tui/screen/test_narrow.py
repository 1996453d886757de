"""Nothing is too narrow to be shown: columns go one by one, the one that says what it is last."""

import pytest
from support.top_app import page, shown
from support.top_pictures import text_of, view_of
from support.top_scene import life
from support.top_sources import Scripted

from kvflow.tui import lines, stat
from kvflow.tui.rows import NATURAL, flatten
from kvflow.tui.rows import View as RowsView
from kvflow.tui.screen import comparison, tree_cells, workflow
from kvflow.tui.screen.columns import line_of, place
from kvflow.tui.screen.ink import width_of
from kvflow.tui.screen.panels import agents, evictions, prefetches, waiting
from kvflow.tui.source import Link, Status

WIDTHS = range(61)
PANELS = {"agents": agents, "evictions": evictions, "prefetches": prefetches, "waiting": waiting}
TABLES = {
    "tree": (tree_cells.COLUMNS, "id"),
    "agents": (agents.COLUMNS, "agent"),
    "prefetches": (prefetches.COLUMNS, "agent"),
    "waiting": (waiting.COLUMNS, "agent"),
    "evictions": (evictions.COLUMNS, "node"),
    "workflow": (workflow._AGENTS, "agent"),
    "once": (lines._AGENTS, "agent"),
    "compare": (comparison._COLUMNS, "figure"),
    "stat": (stat._COLUMNS, "time"),
}
SMALL = {"20x10": (20, 10), "40x12": (40, 12)}
KEYS = {
    "tree": [],
    "flat": ["t"],
    "workflow": ["w"],
    "details": ["enter"],
    "help": ["question_mark"],
    "filter": ["slash", *"stepz<"],
    "charts": ["1"],
    "agents": ["2", "tab", "z"],
    "prefetches": ["3", "tab"],
    "waiting": ["3", "tab", "tab", "z"],
    "evictions": ["4", "tab", "z"],
    "machine": ["5"],
}


def names(columns, width):
    return [placed.column.name for placed in place(columns, width)]


@pytest.mark.parametrize("table", TABLES)
def test_column_that_says_what_a_row_is_about_is_there_at_any_width(table):
    columns, key = TABLES[table]
    assert [width for width in WIDTHS if key not in names(columns, width)] == []


@pytest.mark.parametrize("panel", PANELS)
def test_panel_of_any_width_fills_it(panel):
    module, view = PANELS[panel], view_of(life(3))
    for width in WIDTHS:
        placed = place(module.COLUMNS, width)
        widths = {column.name: cells for column, cells in placed}
        made = [line_of(placed, row.cells) for row in module.rows(view, widths)]
        assert made
        assert {width_of(line) for line in made} == {sum(widths.values()) + len(widths) - 1}


@pytest.mark.parametrize("width", WIDTHS)
def test_workflow_of_any_width_is_drawn(width):
    assert "live runs" in text_of(workflow.draw(view_of(life(3)), width, 20))


@pytest.mark.parametrize("width", [22, 30, 40, 60])
def test_picture_for_a_script_of_any_width_is_no_wider(width):
    store = view_of(life(3)).store
    rows = flatten(store, RowsView())
    status = Status(Link.LIVE, "LIVE")
    drawn = lines.picture(store, rows, NATURAL, status, "server", width=width, most=9, plain=False)
    assert max(map(len, text_of(drawn).splitlines())) <= width


def test_evictions_beside_the_tree_of_an_ordinary_terminal_tell_their_nodes():
    assert names(evictions.COLUMNS, 48)[0] == "node"


def test_prefetches_beside_waiting_calls_under_a_narrow_tree_tell_their_status():
    assert names(prefetches.COLUMNS, 38)[:2] == ["status", "agent"]


@pytest.mark.parametrize("size", SMALL)
@pytest.mark.parametrize("view", KEYS)
async def test_view_on_a_small_terminal_is_shown(size, view):
    async with shown(Scripted(life(3)), SMALL[size]) as pilot:
        await pilot.press(*KEYS[view])
        await pilot.pause()
        assert page(pilot).strip()
