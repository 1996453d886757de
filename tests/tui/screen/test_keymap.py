"""Keys that a person has chosen: what is refused, and that they hold everywhere."""

import pytest
from support.top_app import page, shown, text
from support.top_scene import life
from support.top_sources import Scripted

from kvflow.tui.config import ConfigError, load
from kvflow.tui.filter import parse
from kvflow.tui.options import ScreenOptions
from kvflow.tui.screen.help import Help
from kvflow.tui.screen.keymap import chosen, shipped
from kvflow.tui.screen.main import MainScreen

FEW = life(3)


@pytest.fixture
def options(tmp_path):
    """Options with a file of this text."""

    def made(content, **other):
        (tmp_path / "top.yaml").write_text(content)
        return ScreenOptions(config=load(tmp_path / "top.yaml"), **other)

    return made


# Keys


def test_chosen_without_a_file_is_what_ships():
    assert chosen(ScreenOptions().config) == shipped()


@pytest.mark.parametrize(
    ("content", "place", "told"),
    [
        (
            "keymap: {view.filtre: f}",
            "1:10",
            "nothing is called 'view.filtre' (did you mean 'view.filter'?)",
        ),
        (
            "keymap: {view.filter: slahs}",
            "1:23",
            "there is no key 'slahs' (did you mean 'slash'?)",
        ),
        ("keymap: {view.filter: cmd+x}", "1:23", "there is no key 'cmd+x'"),
        ("keymap: {view.filter: 'f,'}", "1:23", "there is no key ''"),
        (
            "keymap:\n  view.filter: q",
            "2:16",
            "'q' is a key of app.quit already: give that another one too",
        ),
        (
            "keymap: {view.filter: v, view.flat: v}",
            "1:37",
            "'v' is a key of view.filter already: give that another one too",
        ),
    ],
)
def test_chosen_refuses_what_makes_no_sense_at_its_place(options, content, place, told):
    with pytest.raises(ConfigError) as error:
        chosen(options(content).config)
    assert f"top.yaml:{place}: keymap[" in error.value.what
    assert told in error.value.what


@pytest.mark.parametrize("keys", ["ctrl+shift+x", "f12", "?, é", "shift+up", "ctrl+question_mark"])
def test_chosen_takes_any_key_there_is(options, keys):
    content = f"keymap: {{view.filter: '{keys}', app.help: h}}"
    [binding] = [one for one in chosen(options(content).config) if one.id == "view.filter"]
    assert binding.key == keys.replace(" ", "")


def test_chosen_lets_two_keys_change_places(options):
    bindings = chosen(options("keymap: {view.flat: w, view.workflow: t}").config)
    assert {one.id: one.key for one in bindings if one.id in ("view.flat", "view.workflow")} == {
        "view.flat": "w",
        "view.workflow": "t",
    }


async def test_key_that_was_chosen_works_instead_of_the_one_that_ships(options):
    async with shown(
        Scripted(FEW), options=options("keymap: {list.down: x, view.flat: L}")
    ) as pilot:
        tree = pilot.app.screen.tree_view
        await pilot.press("j", "down", "t")
        assert (tree.cursor, tree.shown.flat) == (0, False)
        await pilot.press("x", "L")
        assert (tree.cursor, tree.shown.flat) == (1, True)


async def test_key_that_ships_for_the_commands_works_for_what_it_is_given_to(options):
    given = options("keymap: {app.palette: colon, list.up: ctrl+p}")
    async with shown(Scripted(FEW), options=given) as pilot:
        await pilot.press("down", "down", "ctrl+p")
        assert isinstance(pilot.app.screen, MainScreen)
        assert pilot.app.screen.tree_view.cursor == 1


async def test_keys_that_changed_places_do_what_they_were_given(options):
    given = options("keymap: {view.flat: w, view.workflow: t}")
    async with shown(Scripted(FEW), options=given) as pilot:
        await pilot.press("w")
        assert pilot.app.screen.tree_view.shown.flat
        await pilot.press("t")
        assert "live runs" in page(pilot)


async def test_key_that_was_chosen_is_what_footer_and_help_show(options):
    async with shown(Scripted(FEW), options=options("keymap: {view.flat: L}")) as pilot:
        assert "L tree or list" in text(pilot)[-1]
        await pilot.press("question_mark")
        assert isinstance(pilot.app.screen, Help)
        assert [line for line in text(pilot) if "L  " in line and "tree or list" in line]


# Presets


async def test_panels_that_were_asked_for_are_shown_and_no_others():
    given = ScreenOptions(panels=("machine",))
    async with shown(Scripted(FEW), options=given) as pilot:
        assert "5 machine" in page(pilot)
        assert "2 agents" not in page(pilot)
        await pilot.press("2")
        assert "2 agents" in page(pilot)


async def test_capital_p_offers_presets_and_takes_one(options):
    content = "presets: {night: {filter: locked, sort: -tokens, panels: [machine], interval: 5}}"
    async with shown(Scripted(FEW), options=options(content)) as pilot:
        await pilot.press("P", *"night")
        await pilot.pause(0.3)
        await pilot.press("enter")
        await pilot.pause()
        await pilot.pause()
        assert pilot.app._source.interval_s == 5.0
        shown_lines = page(pilot)
        assert "filter locked" in shown_lines
        assert "sort tokens ▼" in shown_lines
        assert "5 machine" in shown_lines
        assert "4 evictions" not in shown_lines


async def test_preset_leaves_alone_what_it_does_not_name(options):
    given = options("presets: {calm: {interval: 10}}", filter=parse("locked"))
    async with shown(Scripted(FEW), options=given) as pilot:
        pilot.app._take("calm")
        await pilot.pause()
        assert pilot.app._source.interval_s == 10.0
        assert "filter locked" in page(pilot)
        assert "4 evictions" in page(pilot)


async def test_capital_p_without_presets_says_where_they_are_kept():
    async with shown(Scripted(FEW)) as pilot:
        await pilot.press("P")
        [said] = pilot.app._notifications
        assert "top.yaml" in said.message
