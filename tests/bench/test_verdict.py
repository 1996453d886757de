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
    assert "hicache found 0% of the reusable tokens on the device, loaded 100%" in said(verdict)


def test_judge_no_difference_says_so_first(setting):
    verdict = judge(evidence(setting, {"hicache": DEVICE, "prefetch": DEVICE}))
    assert verdict.headline.startswith("Expect no difference")


def test_judge_of_a_wide_interval_expects_nothing_and_names_no_cause(setting):
    wide = SpeedupFigure(mean=1.0, low=0.5, high=2.0, claim="no difference")
    found = evidence(
        setting,
        {"hicache": FAST_HOST, "prefetch": DEVICE},
        runs={"prefetch/hicache": wide},
        ttft={"prefetch/hicache": wide},
    )
    assert judge(found).headline.startswith("No difference can be shown between kvflow")
    assert "link hides" not in said(judge(found))


def test_judge_slower_does_not_hide_it(setting):
    verdict = judge(evidence(setting, {"hicache": DEVICE, "prefetch": HOST}))
    assert verdict.headline.startswith("Expect kvflow (prefetch) to be slower")


def test_judge_of_one_repeat_says_nothing_yet(setting):
    verdict = judge(evidence(setting, {"hicache": HOST, "prefetch": DEVICE}, repeats=1))
    assert verdict.headline.startswith("A single repeat says nothing yet")


def test_judge_without_a_pair_says_nothing(setting):
    assert judge(evidence(setting, {"hicache": HOST})).headline.startswith("Nothing can be said")


def test_judge_compares_with_stock_lru_where_hicache_was_not_measured(setting):
    verdict = judge(evidence(setting, {"lru": MISS, "full": DEVICE}))
    assert "stock SGLang, no host tier" in verdict.headline
    assert "lru found 0% of the reusable tokens on the device, loaded 0% from the host and" in said(
        verdict
    )


@pytest.mark.parametrize(
    ("answers", "changes", "reason", "advice"),
    [
        ({"hicache": DEVICE, "prefetch": DEVICE}, {}, "pool holds everything", "--pool-ratio"),
        ({"hicache": HOST, "prefetch": DEVICE}, {"recompute_ms": 20.0}, "too small", "--fixed"),
        ({"hicache": HOST, "prefetch": DEVICE}, {"recompute_ms": None}, "too small", "--fixed"),
        (
            {"hicache": make_answer(0.1, 0.9, device=0, host=FIXED),
             "prefetch": make_answer(0.05, 0.9)},
            {}, "Decoding dominates", "--output",
        ),
        ({"hicache": FAST_HOST, "prefetch": DEVICE}, {}, "link hides", "--link-ratio"),
    ],
)  # fmt: skip
def test_judge_says_why_little_is_gained_and_what_would_change_it(
    setting, answers, changes, reason, advice
):
    verdict = judge(evidence(setting, answers, **changes))
    assert reason in " ".join(verdict.reasons)
    assert advice in " ".join(verdict.advice)


def test_judge_gives_no_such_reason_where_a_slow_link_is_hidden(setting):
    words = said(judge(evidence(setting, {"hicache": HOST, "prefetch": DEVICE})))
    for reason in ("too small", "holds everything", "Decoding dominates", "link hides"):
        assert reason not in words


@pytest.mark.parametrize(
    ("engine", "reason"),
    [
        ({"prefetched_used_tokens": 10.0, "prefetched_late_tokens": 6.0}, "60% of what was"),
        ({"prefetched_tokens": 10.0, "prefetched_wasted_tokens": 8.0}, "80% of what was"),
    ],
)
def test_judge_tells_of_late_and_wasted_prefetches(setting, engine, reason):
    found = evidence(setting, {"hicache": HOST, "prefetch": DEVICE}, engine=engine)
    assert reason in said(judge(found))


def test_judge_compares_with_room_for_everything(setting):
    words = said(judge(evidence(setting, {"hicache": HOST, "limit": DEVICE, "prefetch": DEVICE})))
    assert "as fast as a server with room for everything" in words
    words = said(judge(evidence(setting, {"hicache": HOST, "limit": DEVICE, "prefetch": HOST})))
    assert "Room for everything would be faster still" in words


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


@pytest.mark.parametrize(("ours", "worse"), [(0.5, True), (0.11, False)])
def test_judge_sets_mismatches_beside_stocks_own(setting, ours, worse):
    found = evidence(setting, {"hicache": HOST, "prefetch": DEVICE})
    rates = {"hicache": 0.1, "prefetch": ours}
    arms = {
        name: arm.model_copy(update={"mismatch": rates[name]}) for name, arm in found.arms.items()
    }
    verdict = judge(replace(found, arms=arms))
    assert "10% of its own" in said(verdict)
    assert ("please report it" in said(verdict)) is worse


def test_judge_names_what_failed_first(setting):
    found = evidence(setting, {"hicache": HOST, "prefetch": DEVICE})
    broken = found.arms["hicache"].model_copy(update={"failure": "repeat 2: gone"})
    verdict = judge(replace(found, arms={**found.arms, "hicache": broken}))
    assert verdict.reasons[0] == "hicache: repeat 2: gone"
