import pytest
from support.top_app import page, shown, text
from support.top_pictures import text_of, view_of
from support.top_scene import evictions_at, frame_at, life, node
from support.top_sources import Scripted

from kvflow.frames import State
from kvflow.tui.explain import why_evicted
from kvflow.tui.screen.details import draw
from kvflow.tui.screen.main import MainScreen


def drawn(frames, node_id, width=76):
    return text_of(draw(view_of(frames, plain=True), node_id, width))


def test_details_begin_with_why_the_node_is_kept():
    first = drawn([frame_at(1)], 11).splitlines()[0]
    assert first.startswith("in use: 2 locks")


def test_details_have_the_path_from_the_root():
    lines = drawn([frame_at(1)], 11).splitlines()
    at = lines.index("path from the root")
    assert ["#2" in lines[at + 1], "#11" in lines[at + 2]] == [True, True]


def test_details_of_a_long_path_show_the_end_that_is_near():
    chain = tuple(node(10 + place, 9 + place) for place in range(40))
    lines = drawn([frame_at(0, nodes=chain)], 49).splitlines()
    at = lines.index("path from the root")
    assert lines[at + 1] == "28 more above"
    assert "#49" in lines[at + 13]


def test_details_tell_each_state_and_how_long_it_lasted():
    states = (State.DEVICE, State.MIRRORED, State.MIRRORED, State.HOST)
    frames = [
        frame_at(moment, nodes=(node(5, state=state),)) for moment, state in enumerate(states)
    ]
    lines = drawn(frames, 5).splitlines()
    at = lines.index("states, the latest first")
    assert [line.split() for line in lines[at + 1 : at + 4]] == [
        [".", "H", "host", "for", "0.0s"],
        ["@", "M", "mirrored", "for", "2.0s,", "until", "0.0s", "ago"],
        ["#", "D", "device", "since", "it", "was", "first", "seen,", "until", "2.0s", "ago"],
    ]


def test_details_of_a_node_that_left_say_why_it_was_evicted():
    record = evictions_at(0)[5]
    view = view_of([frame_at(0)])
    explained = why_evicted(view.store, record)
    lines = text_of(draw(view, record.node, 200)).splitlines()
    assert lines == ["evicted", explained.verdict, *explained.reasons]


def test_details_of_a_node_that_nothing_is_known_of_say_so():
    assert "nothing more is known" in drawn([frame_at(0)], 999)


def test_details_wrap_to_the_width():
    assert all(len(line) <= 40 for line in drawn([frame_at(1)], 11, 40).splitlines()[:6])


@pytest.mark.parametrize("key", ["escape", "enter", "d", "q"])
async def test_enter_on_a_node_shows_its_details_and_a_key_closes_them_and_nothing_else(key):
    async with shown(Scripted(life(2))) as pilot:
        await pilot.press("down", "enter")
        assert any("node #10" in line for line in text(pilot))
        await pilot.press(key)
        await pilot.pause()
        assert pilot.app.is_running
        assert isinstance(pilot.app.screen, MainScreen)


async def test_details_keep_up_with_the_server():
    source = Scripted(life(2))
    async with shown(source) as pilot:
        await pilot.press("down", "enter")
        before = text(pilot)
        pilot.app._store.apply(frame_at(2))
        pilot.app._show()
        await pilot.pause()
        assert text(pilot) != before


async def test_details_of_a_node_that_leaves_keep_what_was_known():
    async with shown(Scripted(life(2))) as pilot:
        await pilot.press("down", "enter")
        pilot.app._store.apply(frame_at(2, nodes=()))
        pilot.app._show()
        await pilot.pause()
        told = [
            "it has left the tree, and nothing more is known of it",
            "as it was last seen",
            "path from the root",
        ]
        at = [page(pilot).find(words) for words in told]
        assert -1 not in at
        assert at == sorted(at)


async def test_details_of_a_server_that_was_started_anew_close_and_say_so():
    async with shown(Scripted(life(2))) as pilot:
        await pilot.press("down", "enter")
        pilot.app._store.apply(frame_at(2, boot="two"))
        pilot.app._show()
        await pilot.pause()
        assert isinstance(pilot.app.screen, MainScreen)
        [said] = pilot.app._notifications
        assert "#10" in said.message


async def test_details_y_copies_the_id():
    async with shown() as pilot:
        await pilot.press("down", "enter", "y")
        assert pilot.app.clipboard == "10"
