import pytest

from kvflow.errors import KvflowError, printable


@pytest.mark.parametrize("control", ["\x00", "\x07", "\x1b", "\r", "\x7f", "\x9b"])
def test_error_shows_a_terminal_no_orders(control: str) -> None:
    error = KvflowError(f"a{control}b", f"c{control}d", f"e{control}f")
    assert str(error) == "error: a\ufffdb\n  why: c\ufffdd\n hint: e\ufffdf"


def test_error_of_several_findings_keeps_their_lines() -> None:
    assert str(KvflowError("recipe", "one\n       two")) == "error: recipe\n  why: one\n       two"


def test_printable_leaves_words_of_any_language_alone() -> None:
    assert printable("planner\u00a0é 漢字 ▶") == "planner\u00a0é 漢字 ▶"
