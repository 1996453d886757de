import pytest

from kvflow.cli.bench_progress import duration


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.2, "about 1 s"),
        (89, "about 89 s"),
        (90, "about 2 min"),
        (5399, "about 90 min"),
        (5400, "about 1.5 h"),
    ],
)
def test_duration_is_as_exact_as_it_deserves(seconds, text):
    assert duration(seconds) == text
