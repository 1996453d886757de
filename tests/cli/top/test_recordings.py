"""`kvflow top` over recordings: making, reading and comparing them."""

import json
import subprocess
from pathlib import Path

import pytest
from support.frame_server import FrameServer
from support.frames import ChangingServer, busy_frame
from support.processes import PATIENCE_S, wait_until
from support.recordings import recorded
from support.top_command import KVFLOW, NODES, error_of, kvflow_top

from kvflow.cli import top_show
from kvflow.tui.recording import Recording

# Recordings


def test_top_replay_prints_the_last_moment(trace: str) -> None:
    told = json.loads(kvflow_top("--replay", trace, "--json").stdout)
    assert (told["frame"]["seq"], told["source"]["link"]) == (6, "replay")
    assert told["rates"]["h2d_gbps"] == 1.0
    assert len(told["nodes"]) == 3
    assert told["machine"] is None


def test_top_replay_prints_every_moment_without_waiting(trace: str) -> None:
    result = kvflow_top("--replay", trace, "--watch")
    assert [json.loads(line)["frame"]["seq"] for line in result.stdout.splitlines()] == [
        1, 2, 3, 4, 5, 6,
    ]  # fmt: skip
    assert result.exit_code == 0


def test_top_demo_prints_the_recording_that_comes_along() -> None:
    told = json.loads(kvflow_top("--demo", "--json", "--top", "1").stdout)
    assert "CPU engine" in told["source"]["name"]
    assert told["frame"]["counters"]["prefetches"] > 0
    assert told["frame"]["counters"]["evicted_device_tokens"] > 0
    assert top_show.DEMO.stat().st_size < 300_000


def test_top_records_what_it_prints(tmp_path: Path) -> None:
    file = tmp_path / "some.kvtrace"
    with FrameServer([busy_frame(*NODES)]).running() as server:
        result = kvflow_top(server.url, "--once", "--record", str(file))
    assert result.exit_code == 0
    assert Recording(file).label == server.url
    assert len(Recording(file).frame(0).nodes) == 3


def test_top_does_not_record_over_a_file(tmp_path: Path) -> None:
    file = tmp_path / "some.kvtrace"
    file.write_text("mine")
    error = error_of(kvflow_top("http://127.0.0.1:9", "--once", "--record", str(file)))
    assert (error.exit_code, error.what) == (2, f"{file} is there already")
    assert file.read_text() == "mine"


def test_top_that_finds_no_server_leaves_no_recording(tmp_path: Path) -> None:
    file = tmp_path / "some.kvtrace"
    result = kvflow_top("http://127.0.0.1:9", "--no-tui", "--record", str(file))
    assert error_of(result).exit_code == 3
    assert "recorded nothing: no frame came" in result.stderr
    assert not file.exists()


def test_top_without_a_screen_records_until_it_is_terminated(tmp_path: Path) -> None:
    file, changes = tmp_path / "some.kvtrace", ChangingServer(nodes=30)
    answers = [changes.whole(), *(changes.delta() for _ in range(30))]
    with FrameServer(answers).running() as server:
        command = [KVFLOW, "top", server.url, "--no-tui", "--record", str(file), "-d", "0.25"]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process:
            try:
                wait_until(lambda: len(server.asked) > 2, "the third frame")
                process.terminate()
                stdout, stderr = process.communicate(timeout=PATIENCE_S)
            finally:
                process.kill()
    assert (process.returncode, stdout) == (143, "")
    assert stderr.splitlines()[0] == f"recording {server.url} to {file}; Ctrl-C ends it"
    recording = Recording(file)
    assert not recording.cut_short
    assert len(recording) >= 2


# Two recordings


@pytest.fixture
def other_trace(tmp_path: Path) -> str:
    """A recording of three seconds, with another load."""
    frames = [busy_frame(*NODES, at=2 * second) for second in range(3)]
    return str(recorded(tmp_path / "other.kvtrace", frames, "another server"))


def test_top_compare_prints_a_table_of_the_time_that_both_have(
    trace: str, other_trace: str
) -> None:
    result = kvflow_top("--compare", trace, other_trace, "--once")
    assert (result.exit_code, result.stderr) == (0, "")
    lines = result.stdout.splitlines()
    assert lines[0] == "kvflow top  the first 0:04 of two recordings"
    assert lines[1].startswith("A  ")
    assert any(line.startswith("copied from host to device") for line in lines)
    assert max(map(len, lines)) <= 80


def test_top_compare_prints_one_document(trace: str, other_trace: str) -> None:
    told = json.loads(kvflow_top("--compare", trace, other_trace, "--json").stdout)
    assert (told["seconds"], told["b"]["source"]) == (4.0, "another server")
    assert len(told["differences"]) == 11


def test_top_compare_with_itself_finds_no_difference(trace: str) -> None:
    told = json.loads(kvflow_top("--compare", trace, trace, "--json").stdout)
    assert {one["words"] for one in told["differences"]} <= {"", "the same"}


def test_top_compare_that_is_no_terminal_prints_the_table(trace: str) -> None:
    result = kvflow_top("--compare", trace, trace, "--ascii")
    assert "B against A" in result.stdout
    assert result.stdout.isascii()


def test_top_compare_of_what_is_no_recording_says_which(trace: str, tmp_path: Path) -> None:
    (tmp_path / "junk").write_text("junk")
    error = error_of(kvflow_top("--compare", trace, str(tmp_path / "junk"), "-1"))
    assert error.what == f"{tmp_path / 'junk'} is no recording of kvflow top"
