from pathlib import Path

import pytest
from support.frames import busy_frame
from support.recordings import recorded
from support.top_command import NODES

from kvflow.cli import top_machine, top_show


@pytest.fixture(autouse=True)
def _surroundings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(top_show, "running_servers", list)
    monkeypatch.setattr(top_machine, "running_servers", list)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("KVFLOW_API_KEY", raising=False)
    monkeypatch.setenv("COLUMNS", "80")


@pytest.fixture
def trace(tmp_path: Path) -> str:
    """A recording of five seconds."""
    frames = [
        busy_frame(*NODES, at=0),
        *(busy_frame(at=second, delta_since=second) for second in range(1, 6)),
    ]
    return str(recorded(tmp_path / "some.kvtrace", frames))


@pytest.fixture
def settings(tmp_path: Path) -> Path:
    """The usual file, with a preset."""
    file = tmp_path / "config" / "kvflow" / "top.yaml"
    file.parent.mkdir(parents=True)
    file.write_text("presets: {warm: {filter: hits>1, sort: -id, panels: [machine], interval: 5}}")
    return file
