from hypothesis import given
from hypothesis import strategies as st

from kvflow.tui.screen.columns import Column, header, line_of, place
from kvflow.tui.screen.ink import Piece, width_of

TREE = Column("tree", "node", 10, right=False, stretch=True)
STEPS = Column("steps", "steps", 5, rank=1)
AGE = Column("age", "age", 4, rank=2)

columns = st.lists(
    st.builds(
        Column,
        st.text("abc", min_size=1, max_size=3),
        st.just("title"),
        st.integers(1, 12),
        st.booleans(),
        st.booleans(),
        st.integers(0, 5),
    ),
    min_size=1,
    max_size=6,
    unique_by=lambda column: column.name,
)


def text(line):
    return "".join(piece.text for piece in line)


@given(columns, st.integers(12, 80))
def test_place_any_columns_never_takes_more_than_the_width(some, width):
    placed = place(some, width)
    assert sum(each.width for each in placed) + len(placed) - 1 <= width


@given(columns, st.integers(12, 80))
def test_line_of_any_columns_is_as_wide_as_they_are(some, width):
    placed = place(some, width)
    cells = {column.name: [Piece("漢字 and more")] for column in some}
    assert width_of(line_of(placed, cells)) == sum(e.width for e in placed) + len(placed) - 1


def test_place_with_room_for_all_gives_the_rest_to_the_one_that_stretches():
    assert [each.width for each in place([TREE, STEPS, AGE], 40)] == [29, 5, 4]


def test_place_without_room_drops_the_highest_rank_first():
    assert [each.column.name for each in place([TREE, STEPS, AGE], 17)] == ["tree", "steps"]


def test_line_of_aligns_numbers_right_and_names_left():
    placed = place([TREE, STEPS], 16)
    line = line_of(placed, {"tree": [Piece("#7")], "steps": [Piece("3")]})
    assert text(line) == "#7             3"


def test_header_of_the_sorted_column_carries_the_arrow():
    assert text(header(place([TREE, STEPS], 16), "steps", "▼")) == "node       step▼"


def test_header_of_other_columns_has_no_arrow():
    assert text(header(place([TREE, STEPS], 16), "age", "▼")) == "node       steps"
