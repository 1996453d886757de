"""What a line of pieces becomes on a terminal."""

from support.top_app import shown
from support.top_scene import life
from support.top_sources import Scripted


async def test_cursor_in_the_terminals_own_colours_has_gaps_of_one_colour():
    async with shown(Scripted(life(3))) as pilot:
        pilot.app.theme = "ansi-dark"
        await pilot.pause()
        segments = [one for one in pilot.app.screen.tree_view.render_line(1) if one.style.reverse]
        own = pilot.app.screen.tree_view.rich_style.color
        gaps = [one for one in segments if one.text.isspace()]
        assert gaps
        assert {one.style.color for one in gaps} == {own}
        assert not any(one.text.endswith(" ") for one in segments if one.style.color != own)
