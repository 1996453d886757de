from support.top_pictures import text_of, view_of
from support.top_scene import frame_at

from kvflow.frames import Pool
from kvflow.tui.screen.panels.pools import draw

DEVICE = Pool(capacity=8192, free=2048, evictable=4096, locked=2048)


def drawn(width, height, **frame):
    frame = frame_at(0, **{"device": DEVICE, "host": None, **frame})
    return text_of(draw(view_of([frame], plain=True), width, height)).splitlines()


def test_pools_bar_shows_what_is_in_use_evictable_and_free_to_scale():
    assert drawn(32, 7)[1] == "########================........"


def test_pools_title_says_the_share_in_use_and_bytes():
    assert drawn(40, 7)[0] == "device 75%                768Mi of 1.0Gi"


def test_pools_legend_names_the_parts_where_there_is_room():
    assert drawn(50, 7)[2] == "#in use 2.0k  =evictable 4.1k  .free 2.0k"


def test_pools_legend_where_it_is_narrow_leaves_out_the_names():
    assert drawn(26, 7)[2] == "#2.0k  =4.1k  .2.0k"


def test_pools_without_a_host_tier_says_so():
    assert drawn(40, 7)[-1] == "no host tier"


def test_pools_in_few_lines_leave_out_the_legends():
    assert len(drawn(40, 4, host=DEVICE)) == 4


def test_pools_what_calls_hold_outside_the_tree_is_in_use():
    device = Pool(capacity=8192, free=1192, evictable=4000, locked=1000)
    lines = drawn(50, 7, device=device)
    assert lines[2].startswith("#in use 3.0k  =evictable 4.0k  .free 1.2k")


def test_pools_names_stand_once_between_the_bars_where_it_is_narrow():
    assert drawn(26, 7, host=DEVICE)[3] == "#in use =evictable .free"
    assert drawn(20, 7, host=DEVICE)[3] == ""


def test_pools_before_the_first_frame_say_that_there_is_none():
    assert text_of(draw(view_of([]), 40, 7)) == "no frame yet"
