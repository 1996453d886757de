from hypothesis import given
from hypothesis import strategies as st
from support.calm import calm

from kvflow.bench.report.ink import grouped

groups = st.lists(st.tuples(st.text(), st.lists(st.text(), min_size=1, max_size=5)), min_size=2)


@calm
@given(groups)
def test_grouped_gives_headings_and_rows_places_of_their_own_from_top_to_bottom(groups):
    rows = grouped(groups)
    expected = [text for heading, texts in groups for text in (heading, *texts)]
    assert sorted([*rows.labels, *rows.headings]) == list(enumerate(expected))
    assert rows.height == len(expected)
    assert [text for _, text in rows.headings] == [heading for heading, _ in groups]


def test_grouped_of_one_group_needs_no_heading():
    assert grouped([("flow", ["a", "b"])]) == ([(0, "a"), (1, "b")], [], 2)
