import msgspec
from support.top_pictures import text_of, view_of
from support.top_scene import counters_at, frame_at

from kvflow.tui.screen.panels.hits import draw


def frames(*tokens):
    """A frame a second; by then so many tokens were found on device and host, and computed."""
    return [
        frame_at(
            second,
            counters=msgspec.structs.replace(
                counters_at(0),
                hit_device_tokens=device,
                hit_host_tokens=host,
                computed_tokens=computed,
            ),
        )
        for second, (device, host, computed) in enumerate(tokens)
    ]


def test_hits_stacks_device_host_and_computed():
    view = view_of(frames((0, 0, 0), (50, 25, 25)), plain=True)
    rows = text_of(draw(view, 6, 5)).splitlines()
    assert [row[5:] for row in rows[1:]] == [".", "=", "#", "#"]


def test_hits_legend_has_the_latest_interval_with_a_prompt():
    view = view_of(frames((0, 0, 0), (50, 25, 25), (50, 25, 25)), plain=True)
    assert text_of(draw(view, 60, 5)).splitlines()[0] == "#device 50%  =host 25%  .computed 25%"


def test_hits_interval_without_a_prompt_is_blank():
    view = view_of(frames((0, 0, 0), (10, 0, 0), (10, 0, 0)), plain=True)
    assert text_of(draw(view, 60, 3)).splitlines()[2] == " " * 58 + "#"


def test_hits_before_any_prompt_says_nothing_of_shares():
    view = view_of(frames((0, 0, 0)), plain=True)
    assert text_of(draw(view, 60, 3)).splitlines()[0] == "#device -  =host -  .computed -"
