"""Which agent of which run speaks next: steps per agent, from the calls that come and go.

`Run` walks one run through its graph. `RunTable` holds every live run of every client and tells
what changed. Both are deterministic: the same events in the same order give the same
steps on every tensor-parallel rank; there is no clock, no set order and no chance in them.
"""

from kvflow.runs.counts import StepChange
from kvflow.runs.live import Key
from kvflow.runs.run import Run
from kvflow.runs.table import Counters, Limits, RunTable, RunView

__all__ = ["Key", "Run", "RunTable", "RunView", "StepChange", "Limits", "Counters"]
