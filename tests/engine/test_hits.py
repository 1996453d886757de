from kvflow.engine.hits import MOST_LABELS, MOST_OWNERS, OTHER, HitCounts, Hits, Label

OWNER = ("app", "a")
LABEL = Label("work", "a")


def test_admitted_counts_in_all_by_agent_and_by_label():
    hits = Hits()
    hits.admitted(OWNER, LABEL, device=3, host=2, computed=1)
    hits.admitted(OWNER, LABEL, device=30, host=20, computed=10)
    expected = HitCounts(2, 33, 22, 11)
    assert hits.total == expected
    assert hits.of(OWNER) == expected
    assert hits.labels() == [(LABEL, expected)]


def test_admitted_without_a_tag_counts_as_others():
    hits = Hits()
    hits.admitted(None, None, device=3, host=2, computed=1)
    assert hits.labels() == [(OTHER, HitCounts(1, 3, 2, 1))]
    assert hits.of(OWNER) == HitCounts()


def test_agent_that_is_not_registered_counts_as_others():
    hits = Hits()
    hits.admitted(OWNER, None, device=3, host=2, computed=1)
    assert hits.labels() == [(OTHER, HitCounts(1, 3, 2, 1))]
    assert hits.of(OWNER) == HitCounts(1, 3, 2, 1)


def test_labels_beyond_the_limit_count_as_others():
    hits = Hits()
    for number in range(MOST_LABELS + 50):
        hits.admitted(OWNER, Label("work", str(number)), device=1, host=0, computed=0)
    labels = dict(hits.labels())
    assert len(labels) == MOST_LABELS + 1
    assert labels[OTHER].calls == 50
    assert sum(counts.calls for counts in labels.values()) == hits.total.calls


def test_label_within_the_limit_goes_on_counting_when_it_is_reached():
    hits = Hits()
    for _ in range(2):
        for number in range(MOST_LABELS + 1):
            hits.admitted(None, Label("work", str(number)), device=1, host=0, computed=0)
    labels = dict(hits.labels())
    assert labels[Label("work", "0")].calls == 2
    assert labels[OTHER].calls == 2


def test_owners_beyond_the_limit_are_dropped_the_longest_silent_first():
    hits = Hits()
    hits.admitted(("app", "first"), None, device=1, host=0, computed=0)
    hits.admitted(("app", "second"), None, device=1, host=0, computed=0)
    hits.admitted(("app", "first"), None, device=1, host=0, computed=0)
    for number in range(MOST_OWNERS - 1):
        hits.admitted(("app", str(number)), None, device=1, host=0, computed=0)
    assert hits.of(("app", "first")).calls == 2
    assert hits.of(("app", "second")).calls == 0
