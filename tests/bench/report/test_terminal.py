import io

import pytest
from rich.console import Console
from support.bench import (
    SECONDS,
    DrawnRig,
    DrawnStage,
    Silent,
    make_outcome,
    make_result,
    make_setting,
)

from kvflow.bench import document, session
from kvflow.bench.report import terminal
from kvflow.bench.result import settings_of
from kvflow.bench.setting import PaperFigure


def shown(result, *, width=100, tty=False) -> str:
    text = io.StringIO()
    console = Console(file=text, width=width, force_terminal=tty, color_system=None)
    terminal.show(console, settings_of(result))
    return text.getvalue()


def test_terminal_says_the_verdict_before_any_number(tmp_path):
    text = shown(make_result(tmp_path)[0])
    assert "3 repeats of one run each, arms in turns" in text
    assert text.index("Expect kvflow (full)") < text.index("why") < text.index("TTFT ms")


def test_terminal_has_a_row_with_a_bar_for_each_arm(tmp_path):
    bars = {
        line.split()[0]: line.count("█")
        for line in shown(make_result(tmp_path)[0]).splitlines()
        if "█" in line
    }
    assert bars["lru"] == 16
    assert bars["lru"] > bars["hicache"] > bars["full"] > 0


def test_terminal_compares_every_other_arm_with_the_baseline(tmp_path):
    _, below = shown(make_result(tmp_path)[0]).split("times as fast as hicache, 95 % interval:")
    rows = [line.split() for line in below.splitlines() if line]
    assert [row[0] for row in rows] == ["arm", "lru", "full"]
    assert rows[1][1].startswith("0.")  # lru is slower
    assert rows[2][1].startswith("2.")


def test_terminal_compares_with_another_arm_where_the_usual_one_was_not_measured(tmp_path):
    outcome = make_outcome(make_setting(tmp_path), "lru,hicache,full")
    stage = DrawnStage(SECONDS, noise=0.02, faults={("hicache", 0): "no room"})
    session.run(outcome, DrawnRig(stage), Silent())
    text = shown(document.result(outcome, {}, "", None))
    assert "times as fast as lru, 95 % interval:" in text
    assert [line.split()[1][0] for line in text.splitlines() if line.startswith("full")][-1] == "4"


def test_terminal_shows_the_papers_figure_beside_ours(tmp_path):
    paper = PaperFigure({"hicache": 1.24, "limit": 0.9}, "on an H100")
    text = shown(make_result(tmp_path, paper=paper)[0])
    assert "paper, KVFlow over hicache: 1.24 (on an H100); here full: 2." in text
    assert "paper, KVFlow over limit: 0.9 (on an H100); not measured here" in text


def test_terminal_shows_every_setting_of_a_suite(tmp_path):
    text = shown(make_result(tmp_path, "one", "two")[0])
    assert "flow, one" in text
    assert "flow, two" in text


def test_terminal_shows_goodput(tmp_path):
    assert "goodput, calls a second within ttft:300: " in shown(
        make_result(tmp_path, limits={"ttft": 300.0})[0]
    )


def test_terminal_of_80_columns_is_not_overrun(tmp_path):
    text = shown(make_result(tmp_path)[0], width=80, tty=True)
    assert max(len(line) for line in text.splitlines()) <= 80
    assert "…" not in text


def test_terminal_does_not_break_lines_where_they_are_piped_on(tmp_path):
    text = shown(make_result(tmp_path)[0], width=30)
    assert "Of the prompt tokens that can be reused hicache found 100% on the device," in text
    assert "…" not in text


@pytest.mark.parametrize(
    ("share", "text"), [(0, " " * 16), (0.5, "█" * 8 + " " * 8), (1 / 128, "▏" + " " * 15)]
)
def test_bar_is_exact_to_an_eighth(share, text):
    assert terminal.bar(share) == text


def test_bars_of_a_console_without_their_characters_are_ascii(tmp_path):
    raw = io.BytesIO()
    console = Console(file=io.TextIOWrapper(raw, "ascii", errors="replace"), color_system=None)
    terminal.show(console, settings_of(make_result(tmp_path)[0]))
    console.file.flush()
    text = raw.getvalue().decode()
    assert "#" * 16 in text
    assert "?" not in text
