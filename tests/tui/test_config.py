from pathlib import Path

import pytest

from kvflow.errors import UsageError
from kvflow.tui import config
from kvflow.tui.config import ConfigError, Preset, load
from kvflow.tui.rows import Column, Sort

WHOLE = """
keymap: {view.filter: "f,slash", view.charts: 9}
presets:
  night:
    filter: state:host steps<3
    sort: -tokens
    panels: [charts, evictions]
    interval: 5
  bare: {}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "top.yaml"


def error_of(file: Path, text: str) -> str:
    file.write_text(text)
    with pytest.raises(ConfigError) as error:
        load(file)
    assert error.value.exit_code == 2
    return error.value.what.replace(f"{file}:", "")


def test_load_reads_keys_and_presets(file):
    file.write_text(WHOLE)
    read = load(file)
    assert read.keymap == {"view.filter": "f,slash", "view.charts": "9"}
    night = read.preset("night")
    assert night.filter is not None
    assert night.filter.text == "state:host steps<3"
    assert night.sort == Sort(Column.TOKENS, descending=True)
    assert (night.panels, night.interval_s) == (("charts", "evictions"), 5.0)
    assert read.preset("bare") == Preset()


def test_load_without_a_file_takes_the_usual_one_if_it_is_there(tmp_path, monkeypatch):
    monkeypatch.setattr(config, "default_path", lambda: tmp_path / "top.yaml")
    assert load(None).presets == {}
    (tmp_path / "top.yaml").write_text(WHOLE)
    assert set(load(None).presets) == {"night", "bare"}


def test_default_path_is_in_the_folder_of_settings(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert config.default_path() == tmp_path / "kvflow" / "top.yaml"


@pytest.mark.parametrize("text", ["", "# presets:\n\n  # night: {}\n"])
def test_load_of_a_file_without_settings_has_none(file, text):
    file.write_text(text)
    assert (load(file).presets, load(file).keymap) == ({}, {})


def load_error(file: Path) -> str:
    with pytest.raises(UsageError) as error:
        load(file)
    return f"{error.value.what}: {error.value.why}"


def test_load_of_a_file_that_was_named_and_is_not_there_says_so(file):
    assert load_error(file) == f"cannot read {file}: No such file or directory"


def test_load_of_a_file_that_is_too_large_says_so(file):
    file.write_text("#" * 100_001)
    assert "larger than 100,000 bytes" in load_error(file)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("presetz: {}", "1:1: presetz: unknown key 'presetz' (did you mean 'presets'?)"),
        ("x: {}", "1:1: x: unknown key 'x' (known here: keymap, presets)"),
        ("presets: [night]", "1:1: presets: should be a mapping of names to values"),
        ("presets:\n  n: 5", "2:6: presets.n: should be a mapping of names to values"),
        (
            "presets: {n: {intervall: 5}}",
            "1:15: presets.n.intervall: unknown key 'intervall' (did you mean 'interval'?)",
        ),
        (
            "presets:\n  n:\n    filter: stepz<3",
            "3:13: presets.n.filter: filter, column 1: 'stepz<3': a filter knows ",
        ),
        ("presets: {n: {filter: 5}}", "1:23: presets.n.filter: should be text"),
        ("presets: {n: {sort: size}}", "1:21: presets.n.sort: cannot sort by 'size'"),
        (
            "presets: {n: {panels: [chart]}}",
            "1:24: presets.n.panels[0]: no panel 'chart' (did you mean 'charts'?)",
        ),
        ("presets: {n: {panels: 1}}", "1:23: presets.n.panels: should be a list of charts, "),
        (
            "presets: {n: {interval: 0.1}}",
            "1:25: presets.n.interval: should be 0.25 to 60 seconds, not 0.1",
        ),
        (
            "presets: {n: {interval: 61}}",
            "1:25: presets.n.interval: should be 0.25 to 60 seconds, not 61",
        ),
        ("presets: {n: {interval: true}}", "1:25: presets.n.interval: should be a number of"),
        ("keymap: {app.quit: [q]}", "1:10: keymap['app.quit']: should be a key, or several"),
        ("keymap: {app.quit: true}", "1:20: keymap['app.quit']: should be a key, or several"),
        ("presets: [", "1:11: not YAML: "),
        ("a: &x 1\nb: *x", "2:4: no aliases here"),
    ],
)
def test_load_tells_the_place_of_what_makes_no_sense(file, text, told):
    assert error_of(file, text).startswith(told)


def test_load_tells_everything_at_once_in_the_order_of_the_file(file):
    told = error_of(file, "presets: {n: {sort: size, interval: x}}\nkeymap: 3")
    assert [line.split(": ")[1] for line in told.splitlines()] == [
        "presets.n.sort", "presets.n.interval", "keymap",
    ]  # fmt: skip


def test_load_of_what_is_no_text_tells_where(file):
    file.write_bytes(b"presets: {}\n# \xff")
    with pytest.raises(ConfigError, match=r"top\.yaml:2:3: not UTF-8 text"):
        load(file)


def test_preset_that_is_not_there_suggests_one_that_is(file):
    file.write_text(WHOLE)
    with pytest.raises(UsageError) as error:
        load(file).preset("nihgt")
    assert error.value.what == "no preset 'nihgt' (did you mean 'night'?)"
    assert error.value.why == f"presets in {file}: night, bare"
