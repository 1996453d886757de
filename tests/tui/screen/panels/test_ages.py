from support.top_pictures import text_of, view_of
from support.top_scene import frame_at

from kvflow.frames import Ages
from kvflow.tui.screen.panels.ages import draw


def view(hit, evicted):
    """After a second in which these tokens were asked for, and evicted, by age."""
    ages = [
        Ages(bounds_s=(1.0, 60.0), hit_tokens=(0, 0, 0), evicted_tokens=(0, 0, 0)),
        Ages(bounds_s=(1.0, 60.0), hit_tokens=hit, evicted_tokens=evicted),
    ]
    return view_of([frame_at(at, ages=each) for at, each in enumerate(ages)], plain=True)


def test_ages_hits_stand_on_the_axis_and_evictions_hang_from_it():
    rows = text_of(draw(view((10, 0, 0), (0, 0, 10)), 12, 6)).splitlines()
    assert rows[1:] == ["::::", "::::", "  1s  1m", " " * 8 + "::::", " " * 8 + "::::"]


def test_ages_overlap_is_what_both_curves_cover():
    drawn = text_of(draw(view((50, 50, 0), (0, 50, 50)), 40, 6))
    assert "overlap 50%" in drawn


def test_ages_without_an_eviction_says_so():
    first = text_of(draw(view((5, 0, 0), (0, 0, 0)), 40, 6)).splitlines()[0]
    assert first.split() == ["hit", "nothing", "lost", "but", "spent", "KV"]


def test_ages_without_a_hit_says_so():
    first = text_of(draw(view((0, 0, 0), (5, 0, 0)), 26, 6)).splitlines()[0]
    assert first.split() == ["evicted", "nothing", "was", "hit"]


def test_ages_where_nothing_has_happened_says_so_in_a_narrow_panel_too():
    first = text_of(draw(view((0, 0, 0), (0, 0, 0)), 26, 6)).splitlines()[0]
    assert first.split() == ["nothing", "was", "hit", "or", "lost"]


def test_ages_before_the_first_frame_say_that_there_is_none():
    assert text_of(draw(view_of([]), 40, 6)) == "no frame yet"


def test_ages_of_a_server_that_does_not_tell_says_so():
    drawn = draw(view_of([frame_at(0, ages=None)]), 40, 6)
    assert text_of(drawn) == "the server does not tell"
