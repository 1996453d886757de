import pytest
from support.top_pictures import inks_of, text_of, view_of
from support.top_scene import frame_at

from kvflow.tui.screen.banner import ROOMY, Situation, draw
from kvflow.tui.screen.ink import Ink, width_of
from kvflow.tui.source import Link, Status

LIVE = Status(Link.LIVE, "LIVE")
NOW = Situation(LIVE, "http://127.0.0.1:30000", 1.0, order="id ▲", shown=12)


def lines(now=NOW, frames=None, width=100, height=ROOMY):
    view = view_of([frame_at(5)] if frames is None else frames)
    return draw(view, now, width, height)


def test_banner_says_server_state_mode_and_pace():
    first = text_of(lines()).splitlines()[0]
    assert first.split() == [
        "kvflow", "top", "LIVE", "http://127.0.0.1:30000", "mode", "prefetch", "every", "1", "s",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("width", "told"),
    [
        (100, "tiny  mode prefetch  up 3h  every 1 s"),
        (76, "mode prefetch  up 3h  every 1 s"),
        (70, "mode prefetch  every 1 s"),
    ],
)
def test_banner_says_model_and_uptime_where_there_is_room(width, told):
    frames = [frame_at(5, model="tiny", uptime_s=3 * 3600.0)]
    first = text_of(lines(frames=frames, width=width)).splitlines()[0]
    assert first.split("30000")[1].strip() == told


@pytest.mark.parametrize(
    ("width", "told"),
    [
        (130, "mode full (eviction order only: no host tier)  up 3h  every 1 s"),
        (97, "mode full (eviction order only: no host tier)  every 1 s"),
        (90, "mode full (eviction order only: no host tier)"),
        (84, "mode full (eviction order only)  every 1 s"),
        (76, "mode full (eviction order only)"),
        (71, "mode full  every 1 s"),
    ],
)
def test_banner_says_what_leaves_only_the_eviction_order_in_as_many_words_as_fit(width, told):
    frames = [frame_at(5, mode="full", limits=("no host tier",), uptime_s=3 * 3600.0)]
    first = text_of(lines(frames=frames, width=width)).splitlines()[0]
    assert first.split("30000")[1].strip() == told


@pytest.mark.parametrize("mode", ["off", "evict"])
def test_banner_of_a_mode_that_only_evicts_has_nothing_to_say_of_limits(mode):
    shown = lines(frames=[frame_at(5, mode=mode, limits=("no host tier",))], width=130)
    assert "order only" not in text_of(shown)


def test_banner_says_load_choices_and_the_size_of_the_tree():
    _, load, choices, tree = text_of(lines(NOW._replace(filter="locked", follow=True))).splitlines()
    assert load.split() == ["running", "2", "waiting", "3", "runs", "4"]
    assert choices.split() == ["sort", "id", "▲", "filter", "locked", "follow"]
    assert tree.startswith("nodes 13  rows 12  calls 90 tagged, 2 untagged")


def test_banner_with_fewer_lines_has_pools_and_hits_in_the_last():
    shown = text_of(lines(width=78, height=3)).splitlines()
    assert "sort id" in shown[1]
    assert shown[2].startswith("device ")
    assert "hits D " in shown[2]


@pytest.mark.parametrize("link", [link for link in Link if link not in (Link.LIVE, Link.REPLAY)])
def test_banner_of_a_source_that_is_not_well_says_so_in_words(link):
    status = Status(link, f"<{link}>", "the reason", "the remedy")
    shown = lines(NOW._replace(status=status))
    assert f"<{link}>" in text_of(shown)
    assert "the reason  hint: the remedy" in text_of(shown)
    assert inks_of(shown, "the reason") == {Ink.ERROR}


@pytest.mark.parametrize("height", [3, ROOMY])
def test_banner_whose_hint_has_no_room_beside_the_reason_has_it_below(height):
    status = Status(Link.STALE, "STALE 4 s", "why " * 5, "hint " * 9)
    shown = text_of(lines(NOW._replace(status=status), width=60, height=height)).splitlines()
    assert len(shown) == height
    assert shown[1] == ("why " * 5).rstrip()
    assert shown[2] == f"hint: {'hint ' * 9}".rstrip()


def test_banner_reason_that_has_no_room_ends_in_an_ellipsis():
    status = Status(Link.GARBAGE, "GARBAGE", "x" * 90)
    shown = text_of(lines(NOW._replace(status=status), width=60)).splitlines()
    assert shown[1] == "x" * 59 + "…"


def test_banner_says_paused_only_while_the_source_is_well():
    assert "PAUSED" in text_of(lines(NOW._replace(paused=True)))
    gone = NOW._replace(paused=True, status=Status(Link.DISCONNECTED, "DISCONNECTED"))
    assert "DISCONNECTED" in text_of(lines(gone))


@pytest.mark.parametrize(("width", "height"), [(78, 3), (100, ROOMY)])
def test_banner_says_that_the_server_was_restarted(width, height):
    frames = [frame_at(5), frame_at(6, boot="two")]
    shown = lines(frames=frames, width=width, height=height)
    assert "runs 4     server restarted" in text_of(shown).splitlines()[1]
    assert inks_of(shown, "restarted") == {Ink.WARNING}


def test_banner_of_a_recording_has_no_pace():
    replay = NOW._replace(status=Status(Link.REPLAY, "REPLAY 0:10/1:00 x2"))
    assert "every" not in text_of(lines(replay))


def test_banner_that_records_names_the_file():
    assert "REC my.kvtrace" in text_of(lines(NOW._replace(recording="my.kvtrace")))


def test_banner_before_the_first_frame_says_so():
    assert "no frame yet" in text_of(lines(frames=[]))


@pytest.mark.parametrize("width", [40, 78, 200])
def test_banner_long_addresses_give_way(width):
    shown = lines(NOW._replace(label="http://" + "x" * 200), width=width)
    assert width_of(shown[0]) == width
