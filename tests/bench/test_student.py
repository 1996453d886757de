from math import exp, lgamma, pi, sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.calm import calm

from kvflow.bench.student import central_share, two_sided_quantile

# As printed in tables of the distribution.
TABLE = [
    (0.95, 1, 12.706),
    (0.95, 2, 4.303),
    (0.95, 4, 2.776),
    (0.95, 9, 2.262),
    (0.95, 30, 2.042),
    (0.95, 120, 1.980),
    (0.99, 5, 4.032),
    (0.90, 3, 2.353),
]


@pytest.mark.parametrize(("confidence", "freedom", "t"), TABLE)
def test_quantile_is_that_of_printed_tables(confidence, freedom, t):
    assert two_sided_quantile(confidence, freedom) == pytest.approx(t, abs=5e-4)


def density(t: float, freedom: int) -> float:
    scale = exp(lgamma((freedom + 1) / 2) - lgamma(freedom / 2)) / sqrt(freedom * pi)
    return scale * (1 + t * t / freedom) ** (-(freedom + 1) / 2)


def integral(t: float, freedom: int, pieces: int = 400) -> float:
    """Simpson's rule over the density, from -t to t."""
    step = t / pieces
    inner = sum((4 if k % 2 else 2) * density(k * step, freedom) for k in range(1, pieces))
    return 2 * step / 3 * (density(0, freedom) + inner + density(t, freedom))


@calm
@given(t=st.floats(0, 8), freedom=st.integers(1, 60))
def test_share_is_the_integral_of_the_density(t, freedom):
    assert central_share(t, freedom) == pytest.approx(integral(t, freedom), abs=1e-6)


@calm
@given(confidence=st.floats(0.01, 0.999), freedom=st.integers(1, 60))
def test_quantile_undoes_the_share(confidence, freedom):
    t = two_sided_quantile(confidence, freedom)
    assert central_share(t, freedom) == pytest.approx(confidence, abs=1e-9)


@pytest.mark.parametrize(("confidence", "freedom"), [(0, 3), (1, 3), (0.95, 0)])
def test_quantile_without_such_a_distribution_is_refused(confidence, freedom):
    with pytest.raises(ValueError, match="no t interval"):
        two_sided_quantile(confidence, freedom)
