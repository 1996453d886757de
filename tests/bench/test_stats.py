import random
from math import exp, log

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.calm import calm

from kvflow.bench.stats import Claim, Ratio, paired, percentile, spread, unpaired

times = st.floats(1e-3, 1e3)
pairs = st.lists(st.tuples(times, times), min_size=2, max_size=12)


def test_paired_of_a_known_sample_has_the_interval_of_its_logs():
    # Logs 0.1, 0.2, 0.3: mean 0.2, standard error 0.1 / sqrt(3), t(2) = 4.303.
    ratio = paired([1, 1, 1], [exp(0.1), exp(0.2), exp(0.3)])
    half = 4.3027 * 0.1 / 3**0.5
    assert ratio == pytest.approx((exp(0.2), exp(0.2 - half), exp(0.2 + half)), rel=1e-4)


@calm
@given(pairs)
def test_paired_the_other_way_round_is_the_inverse(sample):
    own, other = zip(*sample, strict=True)
    one, two = paired(own, other), paired(other, own)
    assert one.mean == pytest.approx(1 / two.mean)
    assert one.low == pytest.approx(1 / two.high)


@calm
@given(pairs, st.lists(st.floats(0.1, 10), min_size=12, max_size=12))
def test_paired_does_not_see_what_slows_a_whole_repeat(sample, slower):
    own, other = zip(*sample, strict=True)
    disturbed = [[t * s for t, s in zip(arm, slower, strict=False)] for arm in (own, other)]
    assert paired(*disturbed) == pytest.approx(paired(own, other), rel=1e-6)


def test_paired_of_one_repeat_claims_nothing():
    ratio = paired([1.0], [2.0])
    assert (ratio.mean, ratio.low, ratio.high, ratio.claim) == (2.0, None, None, Claim.UNKNOWN)


@pytest.mark.parametrize("sides", [([], []), ([1.0], [1.0, 2.0])])
def test_paired_without_pairs_is_refused(sides):
    with pytest.raises(ValueError, match=r"repeats|shorter|longer"):
        paired(*sides)


@pytest.mark.parametrize(
    ("ratio", "claim"),
    [
        (Ratio(1.5, 1.2, 1.9), Claim.FASTER),
        (Ratio(0.8, 0.7, 0.9), Claim.SLOWER),
        (Ratio(1.5, 0.99, 2.0), Claim.NO_DIFFERENCE),
        (Ratio(0.9, 0.8, 1.01), Claim.NO_DIFFERENCE),
        (Ratio(1.5, 1.0, 2.0), Claim.NO_DIFFERENCE),
        (Ratio(1.019, 1.018, 1.0195), Claim.NO_DIFFERENCE),  # below 2 %
        (Ratio(0.981, 0.9805, 0.9815), Claim.NO_DIFFERENCE),
        (Ratio(1.021, 1.018, 1.03), Claim.FASTER),
    ],
)
def test_claim_needs_two_percent_and_an_interval_without_one(ratio, claim):
    assert ratio.claim is claim


def test_paired_the_same_distribution_against_itself_claims_nothing_in_17_of_20_trials():
    claims = []
    for seed in range(20):
        draw = random.Random(seed).lognormvariate
        own, other = [[draw(0, 0.15) for _ in range(5)] for _ in range(2)]
        claims.append(paired(own, other).claim)
    assert claims.count(Claim.NO_DIFFERENCE) >= 17


def test_paired_a_real_difference_is_claimed_through_the_same_noise():
    claims = []
    for seed in range(20):
        draw = random.Random(seed).lognormvariate
        own = [draw(0, 0.1) for _ in range(5)]
        claims.append(paired(own, [draw(log(1.5), 0.1) for _ in range(5)]).claim)
    assert claims.count(Claim.FASTER) >= 17


def test_unpaired_has_the_interval_of_welch():
    # The example of equal sizes and variances is the pooled interval with 2n - 2 degrees.
    logs = ([0.1, 0.2, 0.3], [0.4, 0.5, 0.6])
    ratio = unpaired(*([exp(value) for value in side] for side in logs))
    half = 2.7764 * (2 * 0.1**2 / 3) ** 0.5
    assert ratio == pytest.approx((exp(0.3), exp(0.3 - half), exp(0.3 + half)), rel=1e-4)


def test_unpaired_of_one_value_claims_nothing():
    assert unpaired([1.0, 1.1], [2.0]).claim is Claim.UNKNOWN


def test_unpaired_without_any_noise_is_certain():
    assert unpaired([1.0, 1.0], [2.0, 2.0]) == Ratio(2.0, 2.0, 2.0)


@calm
@given(st.lists(times, min_size=1, max_size=40), st.sampled_from([5, 50, 95, 99]))
def test_percentile_lies_between_the_values_of_its_rank(values, share):
    ordered = sorted(values)
    at = (len(ordered) - 1) * share / 100
    found = percentile(values, share)
    assert ordered[int(at)] <= found * (1 + 1e-9)
    assert found <= ordered[min(int(at) + 1, len(ordered) - 1)] * (1 + 1e-9)


def test_spread_has_the_key_names_of_vllm_bench_in_milliseconds():
    found = spread("ttft", [0.1, 0.3])
    assert set(found) == {f"{kind}_ttft_ms" for kind in ("mean", "median", "std", "p95", "p99")}
    assert found["mean_ttft_ms"] == pytest.approx(200)
    assert found["p99_ttft_ms"] == pytest.approx(298)
    assert found["std_ttft_ms"] == pytest.approx(200 / 2**0.5)
