"""The timeline of a setting: one run of each arm, call by call. Needs matplotlib."""

from collections.abc import Sequence
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple

from kvflow.bench.arms import ARMS
from kvflow.bench.report.ink import FAINT, HOST, STALL, WHERE, WIDE, finished, patch
from kvflow.bench.session import Measured
from kvflow.bench.trace import Copy, Look, Trace
from kvflow.bench.trial import Trial, hits
from kvflow.client.records import CallRecord

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_DECODING = "#CFCFCF"
_MOST_CALLS = 30  # of a run that are shown; more cannot be told apart
_STALL = 3.0  # medians between two tokens from which the answer stood still
_UNTOLD = "not told"
_NO_HOST = "no host tier"


class Shown(NamedTuple):
    """What is drawn of an arm.

    Attributes:
        arm: its name.
        calls: of one run, in the order in which they were sent.
        looks: at the server; none if it tells nothing.
        copies: to the device; None if nobody tells.
        began_s: when the first of the calls was sent.
    """

    arm: str
    calls: Sequence[CallRecord]
    looks: Sequence[Look]
    copies: Sequence[Copy] | None
    began_s: float


class Span(NamedTuple):
    """A stretch of time, in seconds."""

    start: float
    seconds: float


def draw(make: Any, measured: Measured) -> "Figure":
    """One run of each arm: what every call waited for, how it decoded, and what the link did."""
    arms = shown(measured.trials)
    usual_s = _usual_gap_s(arms)
    rows = [len(arm.calls) + 1 for arm in arms]
    figure = make(figsize=(WIDE, 1.0 + sum(0.45 + 0.17 * count for count in rows)))
    panels = figure.subplots(
        len(arms), 1, sharex=True, squeeze=False, gridspec_kw={"height_ratios": rows}
    )[:, 0]
    for axes, arm in zip(panels, arms, strict=True):
        _panel(axes, arm, usual_s)
    panels[-1].set_xlabel("seconds")
    figure.legend(
        handles=_legend(usual_s, arms), loc="upper center", bbox_to_anchor=(0.5, 0.0), ncols=2,
        frameon=False, fontsize=8,
    )  # fmt: skip
    label = measured.facts.get("label")
    name = measured.setting.name
    return finished(figure, f"{name}; {label}" if label else name)


def shown(trials: Sequence[Trial]) -> list[Shown]:
    """Of each arm the run that was watched; without one the first run of its last whole turn."""
    latest = {trial.arm: trial for trial in trials if trial.whole}
    found = []
    for name in (name for name in ARMS if name in latest):
        trace = latest[name].trace or Trace(latest[name].calls)
        calls = _one_run(trace.calls)
        began_s = min(call.started_s or 0.0 for call in calls)
        found.append(Shown(name, calls, trace.looks, trace.copies, began_s))
    return found


def stalls(call: CallRecord, usual_s: float) -> list[Span]:
    """When an answer stood still: far longer between two tokens than is usual.

    Times are from the first token.
    """
    assert call.answer is not None
    times = (0.0, *call.answer.token_times_s)
    return [
        Span(before, after - before)
        for before, after in pairwise(times)
        if after - before > _STALL * usual_s
    ]


def _panel(axes: "Axes", arm: Shown, usual_s: float) -> None:
    for row, call in enumerate(arm.calls):
        assert call.answer is not None
        start = (call.started_s or 0.0) - arm.began_s
        first = start + call.answer.ttft_s
        axes.barh(row, call.answer.ttft_s, left=start, color=_colour(call), height=0.8)
        decoding = call.answer.latency_s - call.answer.ttft_s
        axes.barh(row, decoding, left=first, color=_DECODING, height=0.5)
        for stall in stalls(call, usual_s):
            axes.barh(row, stall.seconds, left=first + stall.start, color=STALL, height=0.5)
    _link_row(axes, arm, len(arm.calls))
    names = [call.call.agent for call in arm.calls]
    axes.set_yticks(range(len(names) + 1), [*names, "copies"], fontsize=7)
    axes.set_ylim(len(names) + 0.5, -0.6)
    axes.set_title(arm.arm, loc="left", fontsize=10)
    axes.grid(axis="x", color="#DDDDDD")
    axes.set_axisbelow(True)


def _link_row(axes: "Axes", arm: Shown, row: int) -> None:
    if _is_untold(arm) or not ARMS[arm.arm].has_host_tier:
        text = _UNTOLD if _is_untold(arm) else _NO_HOST
        axes.text(
            0.005, row, text, transform=axes.get_yaxis_transform(), fontsize=6.5, color=FAINT,
            va="center",
        )  # fmt: skip
    for copy in arm.copies or ():
        start_s = copy.start_s - arm.began_s
        axes.barh(row, copy.end_s - copy.start_s, left=start_s, color=HOST, height=0.5)
    waited = [
        after.at_s - arm.began_s
        for before, after in pairwise(arm.looks)
        if after.waits > before.waits
    ]
    axes.plot(waited, [row - 0.5] * len(waited), "v", color=STALL, markersize=4)


def _is_untold(arm: Shown) -> bool:
    return arm.copies is None and ARMS[arm.arm].has_host_tier


def _legend(usual_s: float, arms: Sequence[Shown]) -> list[Any]:
    from matplotlib.lines import Line2D

    waits = Line2D([], [], color=STALL, marker="v", linestyle="", markersize=4)
    waits.set_label("a forward waited for a load (stock SGLang does not tell)")
    entries = [
        *(patch(colour, f"until the first token, prefix {label}") for colour, label in WHERE),
        patch(_DECODING, "decoding"),
        patch(STALL, f"no token for more than {_STALL * usual_s * 1e3:.0f} ms"),
        waits,
    ]
    if any(_is_untold(arm) for arm in arms):
        label = f"copies {_UNTOLD}: by stock SGLang on a GPU, or in a run that was not watched"
        entries.append(Line2D([], [], linestyle="", label=label))
    return entries


def _usual_gap_s(arms: Sequence[Shown]) -> float:
    gaps = [
        gap for arm in arms for call in arm.calls if call.answer for gap in call.answer.itl_s
    ]  # fmt: skip
    return median(gaps) if gaps else 0.0


def _colour(call: CallRecord) -> str:
    """Where most of the call's reusable tokens were found."""
    found = hits([call])
    tokens = (found.device, found.host, found.reusable - found.device - found.host)
    return WHERE[tokens.index(max(tokens))][0]


def _one_run(calls: Sequence[CallRecord]) -> list[CallRecord]:
    """The first calls of the first run."""
    answered = [call for call in calls if call.run == calls[0].run and call.answer is not None]
    return sorted(answered, key=lambda call: call.started_s or 0.0)[:_MOST_CALLS]
