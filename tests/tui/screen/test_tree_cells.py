import pytest
from support.top_pictures import text_of
from support.top_scene import node

from kvflow.frames import State, Why
from kvflow.tui.glyphs import ASCII, UNICODE
from kvflow.tui.rows import Row
from kvflow.tui.screen.ink import Ink
from kvflow.tui.screen.tree_cells import Look, cells

LOOK = Look(UNICODE, False, 1024, None, 100.0, 1000)
PLAIN = LOOK._replace(glyphs=ASCII, plain=True)


def row(level=0, expanded=None, matched=True, ghost=False, **of_node):
    return Row(node(7, **of_node), level, expanded, matched, ghost, None)


def cell(name, shown, look=LOOK, width=26):
    return text_of([cells(shown, look, width)[name]])


@pytest.mark.parametrize(
    ("state", "mark", "plain"),
    [
        (State.DEVICE, "● D", "# D"),
        (State.MIRRORED, "◉ M", "@ M"),
        (State.HOST, "○ H", ". H"),
        (State.LOADING, "▲ L", "^ L"),
        (State.OFFLOADING, "▼ O", "v O"),
    ],
)
def test_cells_state_is_told_by_glyph_and_letter(state, mark, plain):
    assert cell("state", row(state=state)) == mark
    assert cell("state", row(state=state), PLAIN) == plain


def test_cells_ghost_is_told_by_glyph_letter_and_pale_ink():
    shown = cells(row(ghost=True), LOOK, 26)
    assert text_of([shown["state"]]) == "· x"
    assert {piece.ink for name in ("state", "id", "tokens") for piece in shown[name]} == {Ink.GHOST}


def test_cells_place_is_indented_by_level():
    assert cell("id", row(level=2)) == "│ │   #7"
    assert cell("id", row(level=2), PLAIN) == "| |   #7"


def test_cells_place_too_deep_for_its_column_says_the_level():
    assert cell("id", row(level=1200)) == "│ │ │ │ │ »1200   #7"


def test_cells_place_says_whether_it_is_expanded():
    assert cell("id", row(expanded=True)) == "▾ #7"
    assert cell("id", row(expanded=False), PLAIN) == "+ #7"


def test_cells_agents_of_the_only_client_are_named_without_it():
    shown = row(agents=("peer/planner", "peer/reviewer"))
    assert cell("id", shown, LOOK._replace(client="peer")) == "  #7 planner reviewer"


def test_cells_agent_of_one_of_several_clients_keeps_its_name_when_short_of_room():
    assert cell("id", row(agents=("software-company/engineer",))) == "  #7 software-co…/engineer"


def test_cells_steps_that_decide_nothing_are_pale():
    near, spent = row(steps=1, why=Why.STEPS), row(steps=64, why=Why.SPENT)
    assert cells(near, LOOK, 26)["steps"][0].ink is Ink.ACCENT
    assert cells(spent, LOOK, 26)["steps"][0].ink is Ink.MUTED


def test_cells_locks_and_hits_of_nobody_are_blank():
    assert cell("locks", row(locks=0)) == cell("hits", row(hits=0)) == ""
    assert cell("locks", row(locks=3)) == "*3"


def test_cells_used_counts_accesses_since_the_last_of_this_node():
    assert cell("used", row(last_access=88.0)) == "12"


def test_cells_size_is_drawn_to_the_scale_of_the_largest_node():
    assert cell("size", row(tokens=500), PLAIN) == "======"


def test_cells_bytes_are_tokens_times_what_one_takes():
    assert cell("bytes", row(tokens=2048)) == "2.0Mi"


def test_cells_node_that_is_only_on_the_way_to_a_match_is_pale():
    shown = cells(row(matched=False, hits=1), LOOK, 26)
    assert {shown[name][0].ink for name in ("tokens", "hits")} == {Ink.MUTED}
