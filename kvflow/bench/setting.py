"""What is measured: a workflow in one size, under one pressure. A suite is several of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from kvflow.recipe.load import Loaded


@dataclass(frozen=True, slots=True)
class PaperFigure:
    """What the KVFlow paper says of a setting like this one.

    Attributes:
        speedups: of KVFlow, by the arm it is compared with: `hicache`, `lru`.
        source: where it says so, and on which machine.
    """

    speedups: Mapping[str, float]
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One workload under one pressure; all arms go through it.

    Attributes:
        name: as shown.
        served: the recipe that kvflow is told.
        driven: the recipe that is walked; another one where hints are to be wrong. Names of
            workflow and agents, and fixed prefixes, are those of `served`.
        pool_ratio: device pool over all fixed prefixes; None leaves the pool to the engine.
        link_ratio: time to load a prefix over time to recompute it (CPU engine only); None leaves
            the link as fast as it is.
        runs: measured runs of each arm in each repeat.
        concurrency: runs in flight at once.
        plain_lanes: chats without a tag that go on beside the workflow.
        paper: the paper's figure, if it has one.
    """

    name: str
    served: Loaded
    driven: Loaded
    pool_ratio: float | None = None
    link_ratio: float | None = None
    runs: int
    concurrency: int
    plain_lanes: int = 0
    paper: PaperFigure | None = field(default=None)


@dataclass(frozen=True, slots=True)
class Suite:
    """Settings that are measured one after another.

    Attributes:
        name: of the suite, or of the recipe.
        about: what it is to show, in a sentence.
        settings: each with a name of its own.
    """

    name: str
    about: str
    settings: Sequence[Setting]
