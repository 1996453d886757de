import pytest

from kvflow.engine.ages import BOUNDS_S, Ages


class Clock:
    """A clock that stands still until it is set."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def ages(clock) -> Ages:
    return Ages(clock)


def test_age_is_the_time_since_the_last_use(ages, clock):
    ages.used(1)
    clock.now += 7
    assert ages.of(1) == 7
    ages.used(1)
    assert ages.of(1) == 0


def test_node_that_was_never_used_has_no_age(ages):
    assert ages.of(1) is None


def test_split_nodes_are_as_old_as_the_whole_was(ages, clock):
    ages.used(1)
    clock.now += 7
    ages.split(2, 1)
    assert (ages.of(1), ages.of(2)) == (7, 7)


@pytest.mark.parametrize(
    ("age", "bucket"), [(0, 0), (1.0, 0), (1.001, 1), (10_000, 8), (1e9, len(BOUNDS_S))]
)
def test_hit_counts_in_the_bucket_of_its_age(ages, clock, age, bucket):
    ages.used(1)
    clock.now += age
    ages.hit(1, 30)
    assert ages.hit_tokens[bucket] == sum(ages.hit_tokens) == 30
    assert ages.of(1) == 0


def test_hit_of_a_node_that_was_never_used_counts_in_no_bucket(ages):
    ages.hit(1, 30)
    assert sum(ages.hit_tokens) == 0
    assert ages.of(1) == 0


def test_evicted_counts_in_the_bucket_of_its_age(ages):
    ages.evicted(2.0, 30)
    ages.evicted(None, 5)
    assert ages.evicted_tokens[1] == sum(ages.evicted_tokens) == 30


def test_nodes_that_are_gone_are_forgotten(ages):
    for node in range(10):
        ages.used(node)
    ages.removed(3)
    assert ages.of(3) is None
    ages.forget_nodes()
    assert len(ages) == 0
