from dataclasses import replace

import pytest
from support.bench import FIXED, make_answer, make_setting, make_trial

from kvflow.bench import figures
from kvflow.bench.result import SpeedupFigure
from kvflow.bench.session import Measured
from kvflow.bench.verdict import Evidence, judge


@pytest.fixture
def setting(tmp_path):
    return make_setting(tmp_path)


def evidence(setting, answers, repeats=3, engine=None, **changes) -> Evidence:
    """What arms that answer every call alike give, with a little noise in the times."""
    trials = [
        make_trial(
            setting,
            arm,
            repeat,
            replace(answer, latency_s=answer.latency_s * (1 + 0.001 * repeat * len(arm))),
            counts=engine if arm == "prefetch" else None,
        )
        for arm, answer in answers.items()
        for repeat in range(repeats)
    ]
    measured = Measured(setting, trials=trials)
    speedups = figures.speedups(measured)
    given = {
        "arms": figures.arms(measured, None),
        "runs": {pair: found for pair, found in speedups.items() if pair != "ttft"},
        "ttft": speedups["ttft"],
        "recompute_ms": 300.0,
        "emulated": False,
    }
    return Evidence(**{**given, **changes})


HOST = make_answer(0.4, 0.4, device=0, host=FIXED)
FAST_HOST = make_answer(0.1, 0.4, device=0, host=FIXED)
DEVICE = make_answer(0.1, 0.4, device=FIXED)
MISS = make_answer(0.8, 0.4, device=0)


def said(verdict) -> str:
    return " ".join([*verdict.reasons, *verdict.advice])


def test_judge_faster_says_how_much_and_where_prefixes_were(setting):
    verdict = judge(evidence(setting, {"hicache": HOST, "prefetch": DEVICE}))
    assert verdict.headline.startswith("Expect kvflow (prefetch) to finish a run 1.6")
    assert "first token comes 4.00" in verdict.headline
    assert "hicache found 0% on the device, loaded 100%" in said(verdict)


def test_judge_no_difference_says_so_first(setting):
    verdict = judge(evidence(setting, {"hicache": DEVICE, "prefetch": DEVICE}))
    assert verdict.headline.startswith("Expect no difference")


def unshown(low, high) -> SpeedupFigure:
    return SpeedupFigure(mean=1.0, low=low, high=high, claim="no difference")


@pytest.mark.parametrize(("low", "high"), [(0.5, 2.0), (0.94, 1.02), (0.98, 1.06)])
def test_judge_of_an_interval_with_more_in_it_expects_nothing_and_names_no_cause(
    setting, low, high
):
    found = evidence(
        setting,
        {"hicache": FAST_HOST, "prefetch": DEVICE},
        runs={"prefetch/hicache": unshown(low, high)},
        ttft={"prefetch/hicache": unshown(low, high)},
    )
    assert judge(found).headline.startswith("No difference could be shown between kvflow")
    assert "fast enough to hide" not in said(judge(found))


def test_judge_slower_does_not_hide_it(setting):
    verdict = judge(evidence(setting, {"hicache": DEVICE, "prefetch": HOST}))
    assert verdict.headline.startswith("Expect kvflow (prefetch) to be slower")


def test_judge_of_one_repeat_says_nothing_yet(setting):
    verdict = judge(evidence(setting, {"hicache": HOST, "prefetch": DEVICE}, repeats=1))
    assert verdict.headline.startswith("A single repeat shows nothing yet")


def test_judge_without_a_pair_says_nothing(setting):
    assert judge(evidence(setting, {"hicache": HOST})).headline.startswith("Nothing can be said")


def test_judge_tells_of_what_was_on_the_device_how_much_had_been_prefetched(setting):
    reusable = 3 * 2 * FIXED  # repeats, calls
    engine = {"prefetched_used_tokens": 0.8 * reusable / 3}  # counted in each repeat
    found = evidence(setting, {"hicache": HOST, "prefetch": DEVICE}, engine=engine)
    assert "prefetch found 100% on the device (80% prefetched), loaded 0%" in said(judge(found))


def test_judge_compares_with_stock_lru_where_hicache_was_not_measured(setting):
    verdict = judge(evidence(setting, {"lru": MISS, "full": DEVICE}))
    assert "stock SGLang, no host tier" in verdict.headline
    assert "lru found 0% on the device, loaded 0% from the host on demand and" in said(verdict)


@pytest.mark.parametrize(
    ("answers", "compared"),
    [
        ({"prefetch": HOST, "full": DEVICE}, "kvflow (full) to finish a run 1.6"),
        ({"evict": HOST, "prefetch": DEVICE}, "kvflow (prefetch) to finish a run 1.6"),
    ],
)
def test_judge_compares_modes_where_no_stock_was_measured(setting, answers, compared):
    assert compared in judge(evidence(setting, answers)).headline


@pytest.mark.parametrize(
    ("answers", "changes", "reason", "advice"),
    [
        ({"hicache": DEVICE, "prefetch": DEVICE}, {}, "holds nearly all", "--pool-ratio"),
        ({"hicache": HOST, "prefetch": HOST}, {"recompute_ms": 20.0}, "too small", "--fixed"),
        ({"hicache": HOST, "prefetch": HOST}, {"recompute_ms": None}, "too small", "--fixed"),
        (
            {"hicache": make_answer(0.1, 0.9, device=0, host=FIXED),
             "prefetch": make_answer(0.05, 0.9)},
            {}, "Decoding dominates", "--output",
        ),
        ({"hicache": FAST_HOST, "prefetch": DEVICE}, {}, "enough to hide", "--link-ratio"),
    ],
)  # fmt: skip
def test_judge_says_why_little_is_gained_and_what_would_change_it(
    setting, answers, changes, reason, advice
):
    verdict = judge(evidence(setting, answers, **changes))
    assert reason in " ".join(verdict.reasons)
    assert advice in " ".join(verdict.advice)


def test_judge_gives_no_such_reason_where_a_slow_link_is_hidden(setting):
    answers = {"hicache": HOST, "prefetch": DEVICE}
    words = said(judge(evidence(setting, answers, recompute_ms=20.0)))  # faster all the same
    for reason in ("too small", "holds nearly all", "Decoding dominates", "enough to hide"):
        assert reason not in words


@pytest.mark.parametrize(
    ("engine", "reason"),
    [
        ({"prefetched_used_tokens": 10.0, "prefetched_late_tokens": 6.0}, "60% of the prefetched"),
        ({"prefetched_tokens": 10.0, "prefetched_wasted_tokens": 8.0}, "80% of what was"),
    ],
)
def test_judge_tells_of_late_and_wasted_prefetches(setting, engine, reason):
    found = evidence(setting, {"hicache": HOST, "prefetch": DEVICE}, engine=engine)
    assert reason in said(judge(found))


@pytest.mark.parametrize(
    ("ratio", "words"),
    [
        (unshown(0.97, 1.03), "would gain next to nothing: a run of prefetch is 1.00 (0.97"),
        (unshown(0.85, 1.07), "No difference from room for everything could be shown"),
        (SpeedupFigure(mean=0.9, low=0.85, high=0.95, claim="slower"), "is faster still"),
        (SpeedupFigure(mean=1.2, low=1.1, high=1.3, claim="faster"), "is no faster"),
    ],
)
def test_judge_compares_with_room_for_everything_and_claims_no_more_than_is_shown(
    setting, ratio, words
):
    found = evidence(setting, {"hicache": HOST, "limit": DEVICE, "prefetch": DEVICE})
    found.runs["prefetch/limit"] = ratio
    assert words in said(judge(found))


def test_judge_takes_no_limit_from_a_pool_that_does_not_hold_everything(setting):
    found = evidence(setting, {"hicache": HOST, "limit": HOST, "prefetch": DEVICE})
    assert "limit found only 0% on the device" in said(judge(found))
    assert "room for everything" not in said(judge(found))


def test_judge_asks_for_repeats_where_the_interval_is_wide(setting):
    wide = SpeedupFigure(mean=1.5, low=1.1, high=2.0, claim="faster")
    found = evidence(
        setting, {"hicache": HOST, "prefetch": DEVICE}, runs={"prefetch/hicache": wide}
    )
    assert "--repeats" in " ".join(judge(found).advice)


def test_judge_labels_what_was_emulated(setting):
    answers = {"hicache": HOST, "prefetch": DEVICE}
    assert "emulated link" in said(judge(evidence(setting, answers, emulated=True)))
    assert "emulated link" not in said(judge(evidence(setting, answers)))


@pytest.mark.parametrize(
    ("ours", "answers", "worse"),
    [(0.5, 10, True), (0.11, 1000, False), (0.2, 10, False), (0.2, 30, True)],
)
def test_judge_sets_mismatches_beside_stocks_own(setting, ours, answers, worse):
    found = evidence(setting, {"hicache": HOST, "prefetch": DEVICE})
    rates = {"hicache": 0.1, "prefetch": ours}
    arms = {
        name: arm.model_copy(update={"mismatch": rates[name], "answers_compared": answers})
        for name, arm in found.arms.items()
    }
    verdict = judge(replace(found, arms=arms))
    assert f"({answers} compared); so do 10% of the answers of hicache" in said(verdict)
    assert ("please report it" in said(verdict)) is worse


def test_judge_names_what_failed_first(setting):
    found = evidence(setting, {"hicache": HOST, "prefetch": DEVICE})
    broken = found.arms["hicache"].model_copy(update={"failure": "repeat 2: gone"})
    verdict = judge(replace(found, arms={**found.arms, "hicache": broken}))
    assert verdict.reasons[0] == "hicache: repeat 2: gone"
