"""`kvflow top` without a screen: one moment, or a line a tick."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

from support.frame_server import FrameServer
from support.frames import EPOCH_S, busy_frame, make_frame, make_node
from support.recordings import recorded
from support.top_command import KVFLOW, NODES, frames_until_interrupted, kvflow_top

from kvflow.frames import Frame

# One moment


def test_top_once_prints_a_picture_and_nothing_else() -> None:
    with FrameServer([busy_frame(*NODES)]).running() as server:
        result = kvflow_top(server.url, "--once")
    assert (result.exit_code, result.stderr) == (0, "")
    lines = result.stdout.splitlines()
    assert lines[0].startswith(f"kvflow top  {server.url}")
    assert lines[0].endswith("mode prefetch  LIVE")
    assert max(map(len, lines)) <= 80
    assert [line for line in lines if "#2" in line]


def test_top_that_is_no_terminal_prints_one_picture_and_says_so() -> None:
    with FrameServer([busy_frame(*NODES)]).running() as server:
        result = kvflow_top(server.url)
    assert result.exit_code == 0
    assert result.stdout.startswith("kvflow top")
    assert result.stderr == "note: stdout is no terminal: one picture, as with --once\n"


def test_top_json_prints_one_document() -> None:
    with FrameServer([busy_frame(*NODES)]).running() as server:
        result = kvflow_top(server.url, "--json")
    told = json.loads(result.stdout)
    assert (told["schema_version"], told["source"]["label"]) == (1, "LIVE")
    assert [node["id"] for node in told["nodes"]] == [1, 2, 3]
    assert told["machine"]["host"]["memory_total_bytes"] > 0


def test_top_once_waits_for_the_whole_tree() -> None:
    parts = [
        make_frame(make_node(1), seq=1, nodes_left_out=True, tree_nodes=3),
        make_frame(make_node(2), seq=2, nodes_left_out=True, tree_nodes=3, delta_since=1),
        make_frame(make_node(3), seq=3, tree_nodes=3, delta_since=2),
    ]
    with FrameServer(parts).running() as server:
        told = json.loads(kvflow_top(server.url, "--json").stdout)
    assert told["tree"] == {"known": 3, "complete": True, "matching": 3}


def test_top_shows_what_is_asked_for_in_that_order() -> None:
    with FrameServer([busy_frame(*NODES)]).running() as server:
        arguments = ("--filter", "hits<9", "--sort", "-id", "--top", "2")
        told = json.loads(kvflow_top(server.url, "--json", *arguments).stdout)
    assert [node["id"] for node in told["nodes"]] == [3, 1]


def test_top_in_ascii_prints_nothing_else() -> None:
    with FrameServer([busy_frame(*NODES)]).running() as server:
        assert kvflow_top(server.url, "--once", "--ascii").stdout.isascii()


def test_top_shows_twenty_rows_unless_more_are_asked_for() -> None:
    nodes = [make_node(one) for one in range(1, 31)]
    with FrameServer([make_frame(*nodes)]).running() as server:
        few, all_of_them = kvflow_top(server.url), kvflow_top(server.url, "-1", "--top", "99")
    assert "and 10 more rows" in few.stdout
    assert "more rows" not in all_of_them.stdout


# A stream


def test_top_watch_prints_a_document_a_line_until_it_is_interrupted() -> None:
    frames = [busy_frame(*NODES, at=0), busy_frame(at=1, delta_since=1)]
    with FrameServer(frames_until_interrupted(*frames)).running() as server:
        result = kvflow_top(server.url, "--watch", "-d", "0.25")
    told = [json.loads(line) for line in result.stdout.splitlines()]
    assert [one["frame"]["seq"] for one in told[:2]] == [1, 2]
    assert result.exit_code == 130


def test_top_stat_prints_a_line_a_tick_under_titles_that_come_again(tmp_path: Path) -> None:
    frames = [busy_frame(at=second) for second in range(45)]
    path = recorded(tmp_path / "r", frames)
    lines = kvflow_top("--replay", str(path), "--stat").stdout.splitlines()
    assert len(lines) == 45 + 3 * 2
    assert [at for at, line in enumerate(lines) if line.split()[0] == "time"] == [1, 23, 45]


def test_top_stat_prints_one_line_for_frames_that_come_fast(tmp_path: Path) -> None:
    frames = [make_frame(time_s=EPOCH_S + quarter / 4) for quarter in range(9)]
    path = recorded(tmp_path / "r", frames)
    assert len(kvflow_top("--replay", str(path), "--stat").stdout.splitlines()) == 2 + 3


def test_top_stat_goes_on_when_the_clock_of_the_server_is_set_back(tmp_path: Path) -> None:
    frames = [make_frame(time_s=EPOCH_S + second) for second in (0, 1, 2, -60, -59)]
    path = recorded(tmp_path / "r", frames)
    assert len(kvflow_top("--replay", str(path), "--stat").stdout.splitlines()) == 2 + 5


def test_top_watch_waits_for_the_rest_of_a_tree_that_begins_anew() -> None:
    begins_anew = [
        make_frame(seq=3, nodes_left_out=True),
        make_frame(make_node(1), seq=4, delta_since=3, nodes_left_out=True),
        make_frame(make_node(2), seq=5, delta_since=4),
    ]

    def later(_since: int) -> Frame:
        time.sleep(1.1)  # longer than the interval
        return begins_anew[0]

    frames = (make_frame(make_node(1)), later, *begins_anew[1:])
    with FrameServer(frames_until_interrupted(*frames)).running() as server:
        result = kvflow_top(server.url, "--watch", "-d", "1")
    told = [json.loads(line) for line in result.stdout.splitlines()]
    assert [one["tree"]["known"] for one in told[:2]] == [1, 2]


def test_top_watch_says_on_stderr_that_the_server_is_in_trouble() -> None:
    answers = [busy_frame(), 404, 404, lambda _since: 404]
    process = None
    with FrameServer(answers).running() as server:
        command = [KVFLOW, "top", server.url, "--watch", "-d", "0.25"]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            assert json.loads(process.stdout.readline())["source"]["link"] == "live"
            line = process.stderr.readline()
            process.send_signal(signal.SIGINT)
    assert line.startswith("kvflow top: NOT KVFLOW (retry")
    assert process.returncode == 130


def test_top_ends_in_peace_when_nobody_reads_any_more(trace: str) -> None:
    command = [KVFLOW, "top", "--replay", trace, "--watch"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 0


# Imports and help


def test_top_prints_without_loading_screens_or_an_engine(trace: str) -> None:
    program = (
        "import sys\n"
        "from typer.testing import CliRunner\n"
        "from kvflow.cli.app import app\n"
        f"assert CliRunner().invoke(app, ['top', '--replay', {trace!r}, '-1']).exit_code == 0\n"
        "print([m for m in ('textual', 'sglang', 'torch', 'matplotlib') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr


def test_top_help_fits_80_columns_and_says_where_the_key_comes_from() -> None:
    result = kvflow_top("--help")
    assert max(len(line) for line in result.stdout.splitlines()) <= 80
    assert "KVFLOW_API_KEY" in result.stdout
