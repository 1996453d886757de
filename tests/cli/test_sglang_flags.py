"""Flags of SGLang, on both sides of the --."""

import pytest
from typer.testing import CliRunner

from kvflow.cli.app import app
from kvflow.errors import UsageError

COMMANDS = [("serve", "kvflow serve"), ("bench peer", "kvflow bench run")]


def refusal(*words: str) -> UsageError:
    error = CliRunner().invoke(app, words).exception
    assert isinstance(error, UsageError)
    return error


@pytest.mark.parametrize(("typed", "command"), COMMANDS)
@pytest.mark.parametrize("word", ["--mem-fraction-static", "--mem-fraction-static=0.8"])
def test_sglang_flag_before_the_dashes_is_told_where_it_belongs(
    typed: str, command: str, word: str
) -> None:
    error = refusal(*typed.split(), word, "0.8")
    assert error.what == f"{command} has no option --mem-fraction-static"
    assert error.why == "flags for SGLang stand at the end, after --"
    assert error.hint == f"{command} ... -- {word} ..."


@pytest.mark.parametrize(
    ("words", "near"),
    [
        ("serve --tp 4", "--top"),
        ("bench --outptu 4 peer", "--output"),
        ("serve --recip x", "--recipe"),
    ],
)
def test_sglang_flag_that_looks_like_an_option_is_told_both(words: str, near: str) -> None:
    error = refusal(*words.split())
    assert "after --" in error.why
    assert "did you mean --" in error.hint
    assert near in error.hint


@pytest.mark.parametrize("words", ["serve --help", "bench peer --thorough --help"])
def test_every_option_of_a_command_is_known(words: str) -> None:
    assert CliRunner().invoke(app, words.split()).exit_code == 0
