import pytest

from kvflow.bench.arms import ARMS
from kvflow.bench.plan import Block, Pace
from kvflow.bench.trial import Trial
from kvflow.cli import bench_progress
from kvflow.cli.bench_progress import Progress, duration


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


class Recorder:
    """Keeps what a narrator is told."""

    def __init__(self):
        self.told = []

    def phase(self, name):
        self.told.append(name)

    def say(self, text):
        self.told.append(text)

    def done(self): ...


def test_progress_tells_of_a_start_in_whose_turn_it_is_and_how_long_all_will_take(monkeypatch):
    recorder = Recorder()
    monkeypatch.setattr(bench_progress, "Narrator", lambda: recorder)
    progress, pace = Progress(), Pace(4)
    block = Block("flow", 0, ARMS["hicache"], True, False)
    progress.narrate("setting up flow")
    pace.note("lru", 100.0)  # with a start
    progress.turn_begins(block, pace)
    progress.narrate("starting hicache: loading weights")
    progress.turn_ended(block, Trial(arm="hicache", repeat=0, failure="no room"), pace)
    progress.narrate("setting up other")
    turn = "flow: hicache, repeat 1 (2 of 4, about 5 min left)"
    assert recorder.told == [
        "setting up flow", turn, f"{turn}: starting hicache: loading weights", "  failed: no room",
        "setting up other",
    ]  # fmt: skip
