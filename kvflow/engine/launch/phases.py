"""Where SGLang's start-up is, from the lines that it logs.

A line of SGLang that is not found again in a later version costs a phase on the screen and
nothing else: whether the server is ready is asked over HTTP.
"""

from enum import StrEnum


class Phase(StrEnum):
    """What a start is doing, in the order in which it does it."""

    STARTING = "starting SGLang"
    WEIGHTS = "loading weights"
    CACHE = "allocating the cache"
    GRAPHS = "capturing CUDA graphs"
    WARMING_UP = "warming up"


# (what a line holds, the phase that begins with it); sources are of SGLang 0.5.23.
_BEGINS = (
    ("Load weight begin", Phase.WEIGHTS),  # srt/model_executor/model_runner.py:1274
    ("Load weight end", Phase.CACHE),  # srt/model_executor/model_runner.py:1373
    ("CUDA graph begin", Phase.GRAPHS),  # srt/model_executor/.../cuda_graph_setup.py:685
    ("Started server process", Phase.WARMING_UP),  # uvicorn/server.py
)


def after(line: str, phase: Phase) -> Phase:
    """The phase after a line was logged; a start only ever goes forward."""
    order = list(Phase)
    for text, begins in _BEGINS:
        if text in line and order.index(begins) > order.index(phase):
            return begins
    return phase
