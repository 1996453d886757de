import re
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvflow.engine.launch import phases
from kvflow.engine.launch.phases import Phase

START = (
    ("[2026-01-01 00:00:00] server_args={...}", Phase.STARTING),
    ("[2026-01-01 00:00:01] Load weight begin. avail mem=14.27 GB", Phase.WEIGHTS),
    ("Loading safetensors checkpoint shards: 100% Completed", Phase.WEIGHTS),
    ("[2026-01-01 00:00:02] Load weight end. elapsed=1.84 s", Phase.CACHE),
    ("[2026-01-01 00:00:03] Memory pool end. avail mem=14.27 GB", Phase.CACHE),
    ("[2026-01-01 00:00:04] Capture target decode CUDA graph begin. This can", Phase.GRAPHS),
    ("[2026-01-01 00:00:09] INFO:     Started server process [1]", Phase.WARMING_UP),
)


def test_after_the_lines_of_a_start_is_each_phase_in_turn() -> None:
    phase = Phase.STARTING
    for line, expected in START:
        phase = phases.after(line, phase)
        assert phase is expected


@given(st.lists(st.sampled_from([line for line, _ in START])))
def test_after_lines_in_any_order_never_goes_back(lines: list[str]) -> None:
    order, phase = list(Phase), Phase.STARTING
    for line in lines:
        before, phase = phase, phases.after(line, phase)
        assert order.index(phase) >= order.index(before)


@pytest.mark.engine
@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("sglang/srt/model_executor/model_runner.py", "Load weight begin"),
        ("sglang/srt/model_executor/model_runner.py", "Load weight end"),
        (
            "sglang/srt/model_executor/model_runner_components/cuda_graph_setup.py",
            "CUDA graph begin",
        ),
        ("uvicorn/server.py", "Started server process"),
    ],
)
def test_after_every_phase_is_told_by_words_of_the_installed_sglang(
    source: str, words: str
) -> None:
    package, _, inside = source.partition("/")
    spec = find_spec(package)
    assert spec is not None
    assert spec.origin is not None
    assert re.search(re.escape(words), (Path(spec.origin).parent / inside).read_text())
    assert phases.after(words, Phase.STARTING) is not Phase.STARTING
