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
        "recompute_after_ms": 280.0,
        "link_ratio": 0.5,
        "emulated": False,
        "takes": frozenset({"--pool-ratio", "--link-ratio", "--fixed", "--output"}),
    }
    return Evidence(**{**given, **changes})


HOST = make_answer(0.4, 0.4, device=0, host=FIXED)
FAST_HOST = make_answer(0.1, 0.4, device=0, host=FIXED)
DEVICE = make_answer(0.1, 0.4, device=FIXED)
MISS = make_answer(0.8, 0.4, device=0)

RESIDENT = {"hicache": DEVICE, "prefetch": DEVICE}
SMALL = {"hicache": HOST, "prefetch": HOST}
LONG = {"hicache": make_answer(0.1, 0.9, device=0, host=FIXED), "prefetch": make_answer(0.05, 0.9)}
HIDDEN = {"hicache": FAST_HOST, "prefetch": DEVICE}


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


@pytest.mark.parametrize(
    "answers",
    [
        {"hicache": FAST_HOST, "evict": DEVICE},
        {"hicache": FAST_HOST, "off": FAST_HOST},
        {"hicache": FAST_HOST, "prefetch": FAST_HOST},  # as with wrong hints
        {"hicache": FAST_HOST, "prefetch": make_answer(0.1, 0.4, device=0)},
    ],
)
def test_judge_names_a_fast_link_only_where_ours_brought_prefixes_ahead_of_need(setting, answers):
    assert "enough to hide" not in said(judge(evidence(setting, answers)))


def test_judge_says_nothing_of_the_pool_where_the_baseline_itself_prefetches(setting):
    engine = {"prefetched_used_tokens": 0.8 * 2 * FIXED}  # of the calls of a repeat
    found = evidence(setting, {"prefetch": DEVICE, "full": DEVICE}, engine=engine)
    assert "holds nearly all" not in said(judge(found))


def test_judge_compares_with_the_limit_where_no_other_stock_was_measured(setting):
    verdict = judge(evidence(setting, {"limit": DEVICE, "off": HOST, "prefetch": HOST}))
    assert verdict.headline.startswith("Expect kvflow (prefetch) to be slower")
    assert "stock SGLang, room for everything" in verdict.headline


def test_judge_that_compares_with_the_limit_says_so_once_and_blames_no_large_pool(setting):
    words = said(judge(evidence(setting, {"limit": DEVICE, "prefetch": HOST})))
    assert "A server with room for everything" not in words
    assert "holds nearly all" not in words


def test_judge_that_compares_with_a_limit_without_room_says_that_it_limits_nothing(setting):
    words = said(judge(evidence(setting, {"limit": HOST, "prefetch": DEVICE})))
    assert "limit found only 0% on the device" in words


def test_judge_tells_of_mismatches_by_the_baseline_that_they_were_counted_by(setting):
    found = evidence(setting, {"limit": DEVICE, "off": DEVICE, "prefetch": DEVICE})
    arms = {
        name: arm.model_copy(update={"mismatch": 0.0, "answers_compared": 10})
        for name, arm in found.arms.items()
    }
    assert "those of limit with an empty one" in said(judge(replace(found, arms=arms)))


@pytest.mark.parametrize(
    ("answers", "flag"),
    [(RESIDENT, "--pool-ratio"), (SMALL, "--fixed"), (LONG, "--output"), (HIDDEN, "--link-ratio")],
)
def test_judge_advises_nothing_that_the_bench_would_refuse(setting, answers, flag):
    found = evidence(setting, answers, recompute_ms=20.0 if flag == "--fixed" else 300.0)
    assert flag in " ".join(judge(found).advice)
    refused = replace(found, takes=found.takes - {flag})
    assert flag not in " ".join(judge(refused).advice)
    assert judge(refused).reasons == judge(found).reasons


def test_judge_of_late_prefetches_advises_longer_answers_where_the_link_cannot_be_set(setting):
    engine = {"prefetched_used_tokens": 10.0, "prefetched_late_tokens": 6.0}
    found = evidence(setting, {"hicache": HOST, "prefetch": DEVICE}, engine=engine)
    assert "--link-ratio" in said(judge(found))
    real = judge(replace(found, takes=frozenset({"--output"})))
    assert real.advice == ["Longer answers leave more time: --output"]


def test_judge_tells_of_calls_whose_agents_the_server_does_not_know(setting):
    engine = {"tagged_calls": 20.0, "unknown_agents": 5.0}  # in each of three repeats
    found = evidence(setting, {"hicache": HOST, "prefetch": HOST}, engine=engine)
    assert "does not know the agents of 15 of the 60 calls of prefetch" in said(judge(found))


def test_judge_says_nothing_of_unknown_agents_where_there_are_none(setting):
    engine = {"tagged_calls": 20.0, "unknown_agents": 0.0}
    found = evidence(setting, {"hicache": HOST, "prefetch": HOST}, engine=engine)
    assert "does not know the agents" not in said(judge(found))


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
        (RESIDENT, {}, "holds nearly all", "--pool-ratio"),
        (SMALL, {"recompute_ms": 20.0}, "too small", "--fixed"),
        (SMALL, {"recompute_ms": None}, "too small", "--fixed"),
        (LONG, {}, "Decoding dominates", "--output"),
        (HIDDEN, {}, "enough to hide", "--link-ratio"),
    ],
)
def test_judge_says_why_little_is_gained_and_what_would_change_it(
    setting, answers, changes, reason, advice
):
    verdict = judge(evidence(setting, answers, **changes))
    assert reason in " ".join(verdict.reasons)
    assert advice in " ".join(verdict.advice)


def test_judge_says_that_the_link_was_not_what_it_was_to_be_once_recomputing_costs_less(setting):
    answers = {"hicache": HOST, "prefetch": DEVICE}
    words = said(judge(evidence(setting, answers, recompute_after_ms=100.0)))
    assert "took 300 ms before and 100 ms after" in words
    assert "made the link ratio 1.50 in the end, not 0.5." in words
    assert "while nothing else runs" in words


@pytest.mark.parametrize(
    "changes", [{}, {"recompute_after_ms": None}, {"recompute_after_ms": 100.0, "link_ratio": None}]
)
def test_judge_says_nothing_of_the_link_while_recomputing_costs_the_same(setting, changes):
    answers = {"hicache": HOST, "prefetch": DEVICE}
    assert "link ratio" not in said(judge(evidence(setting, answers, **changes)))


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
