from dataclasses import replace

import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from support.bench import make_answer, make_setting, make_trial

from kvflow.bench.report import ink, timeline
from kvflow.bench.session import Measured
from kvflow.bench.trace import Copy, Look, Trace


@pytest.fixture
def setting(tmp_path):
    return make_setting(tmp_path)


def traced(setting, arm, *looks, answer=None, copies=None):
    """A turn whose watched run began a second after the looks at the server."""
    calls = make_trial(setting, arm, 9, answer).calls
    for call in calls:
        call.started_s += 1.0
    return make_trial(setting, arm, 0, trace=Trace(calls, list(looks), copies))


def bars(figure, panel, colour):
    """Bars of a colour: (left, width), in the order in which they were drawn."""
    patches = figure.axes[panel].patches
    return [
        (pytest.approx(bar.get_x()), pytest.approx(bar.get_width()))
        for bar in patches
        if to_hex(bar.get_facecolor()) == colour.lower()
    ]


@pytest.mark.parametrize(
    ("device", "host", "colour"),
    [(100, 0, ink.DEVICE), (20, 80, ink.HOST), (0, 30, ink.ANEW), (0, 0, ink.ANEW)],
)
def test_draw_colours_a_call_by_where_most_of_its_prefix_was(setting, device, host, colour):
    trial = traced(setting, "full", answer=make_answer(device=device, host=host))
    figure = timeline.draw(Figure, Measured(setting, trials=[trial]))
    assert bars(figure, 0, colour) == [(0.0, 0.1), (0.3, 0.1)]


def test_draw_shows_where_an_answer_stood_still(setting):
    smooth = make_answer(ttft_s=0.1, decode_s=0.4)
    halting = replace(smooth, token_times_s=(0.01, 0.02, 0.39, 0.4))
    trials = [traced(setting, "hicache", answer=halting), traced(setting, "full", answer=smooth)]
    figure = timeline.draw(Figure, Measured(setting, trials=trials))
    assert bars(figure, 0, ink.STALL) == [(0.12, 0.37), (0.62, 0.37)]
    assert bars(figure, 1, ink.STALL) == []


def test_draw_shows_when_copies_were_on_their_way_and_when_a_forward_waited(setting):
    looks = Look(0.9, False, 3), Look(1.1, True, 3), Look(1.3, False, 4), Look(1.4, False, 4)
    trial = traced(setting, "full", *looks, copies=[Copy(1.1, 1.3)])
    figure = timeline.draw(Figure, Measured(setting, trials=[trial]))
    assert bars(figure, 0, ink.HOST) == [(0.1, 0.2)]
    assert list(figure.axes[0].lines[0].get_xdata()) == [pytest.approx(0.3)]


def legend(figure) -> str:
    return " ".join(text.get_text() for text in figure.legends[0].get_texts())


def test_draw_shows_copies_of_stock_sglang_where_the_link_tells_of_them(setting):
    trial = traced(setting, "hicache", copies=[Copy(1.0, 1.5)])
    figure = timeline.draw(Figure, Measured(setting, trials=[trial]))
    assert bars(figure, 0, ink.HOST) == [(0.0, 0.5)]
    assert not figure.axes[0].texts
    assert "copies" not in legend(figure)


def test_draw_says_whose_copies_nobody_tells(setting):
    figure = timeline.draw(Figure, Measured(setting, trials=[traced(setting, "hicache")]))
    assert figure.axes[0].texts[0].get_text() == "not told"
    assert "copies not told: by stock SGLang on a GPU" in legend(figure)


@pytest.mark.parametrize("copies", [None, []])
def test_draw_says_where_there_is_nothing_to_copy(setting, copies):
    trial = traced(setting, "limit", copies=copies)
    figure = timeline.draw(Figure, Measured(setting, trials=[trial]))
    assert figure.axes[0].texts[0].get_text() == "no host tier"
    assert "copies" not in legend(figure)


def test_shown_is_the_watched_run_or_else_one_of_the_last_whole_turn(setting):
    watched, early, late = (make_trial(setting, arm, n) for arm, n in
                            [("full", 0), ("lru", 0), ("lru", 1)])  # fmt: skip
    watched.trace = Trace(make_trial(setting, "full", 7).calls, [Look(0.0, True, 0)])
    failed = make_trial(setting, "lru", 2, whole=False)
    found = timeline.shown([watched, early, late, failed])
    assert [arm.arm for arm in found] == ["lru", "full"]
    assert (found[0].calls[0], found[0].looks) == (late.calls[0], [])
    assert (found[1].calls, found[1].looks) == (watched.trace.calls[:2], watched.trace.looks)


def test_draw_says_what_the_picture_was_made_with(setting):
    measured = Measured(setting, {"label": "emulated"}, [traced(setting, "full")])
    assert timeline.draw(Figure, measured).texts[0].get_text() == "flow; emulated"
