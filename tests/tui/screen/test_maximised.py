"""One panel with the room of all others."""

import pytest
from support.top_app import NARROW, WIDE, page, shown, text
from support.top_scene import life
from support.top_sources import Scripted
from textual.geometry import Region

from kvflow.tui.screen.table import Table

FEW = life(3)


async def test_z_maximises_the_panel_with_the_focus_and_restores_it():
    async with shown(Scripted(FEW)) as pilot:
        before = text(pilot)[:-1]
        await pilot.press("tab", "z")
        await pilot.pause()
        lines = text(pilot)
        assert lines[:4] == before[:4]  # the banner, whatever has happened to the server
        assert lines[4].startswith("╭─ 2 agents ───")
        assert "radix tree" not in page(pilot)
        await pilot.press("z", "shift+tab")
        await pilot.pause()
        assert text(pilot)[:-1] == before


@pytest.mark.parametrize(("size", "keys", "top"), [(NARROW, ["3"], 3), (WIDE, [], 4)])
@pytest.mark.parametrize("name", ["prefetches", "waiting"])
async def test_z_gives_a_table_all_lines_under_the_banner(size, keys, top, name):
    async with shown(Scripted(FEW), size) as pilot:
        await pilot.press(*keys)
        table = pilot.app.screen.query_one(f"#{name}", Table)
        table.focus()
        await pilot.press("z")
        await pilot.pause()
        width, height = size
        assert table.region == Region(0, top, width, height - top - 1)  # the footer is below


@pytest.mark.parametrize("key", ["w", "2"])
async def test_key_that_shows_something_else_ends_the_maximised_view(key):
    async with shown(Scripted(FEW)) as pilot:
        await pilot.press("tab", "z", key)
        await pilot.pause()
        assert "prompt tokens found" in page(pilot)
