"""Numbers and settings in words, the same in every report."""

from collections.abc import Sequence

from kvflow.bench.arms import baseline
from kvflow.bench.result import ArmFigures, Document, SpeedupFigure
from kvflow.bench.stats import Claim
from kvflow.bench.verdict import in_words

COLUMNS = ("arm", "run s", "TTFT ms", "device", "host", "anew", "run speed-up", "TTFT speed-up")
PAPER = "paper, KVFlow"
SPEEDUPS = 2
"""How many of COLUMNS, at the end, compare with the baseline."""


def heading(document: Document) -> str:
    """What was measured, in a line."""
    setup = document.setup
    name = setup["setting"]
    parts = [document.recipe if name == document.recipe else f"{document.recipe}, {name}"]
    parts.append(f"{setup['agents']} agents")
    if setup["pool_ratio"] is not None:
        parts.append(f"pool for {setup['pool_ratio']:g} of their prompts")
    if setup["link_ratio"] is not None:
        parts.append(f"loading takes {setup['link_ratio']:g} of recomputing")
    if setup["concurrency"] > 1:
        parts.append(f"{setup['concurrency']} runs at once")
    if setup["plain_lanes"]:
        parts.append(f"{setup['plain_lanes']} plain chats beside")
    return "; ".join(parts)


def conditions(document: Document) -> str:
    """How it was measured, in a line."""
    setup, repeats = document.setup, {arm.repeats for arm in document.arms.values()}
    counted = f"{min(repeats)} to {max(repeats)}" if len(repeats) > 1 else f"{min(repeats)}"
    runs = "one run" if setup["runs"] == 1 else f"{setup['runs']} runs"
    said = f"{counted} repeats of {runs} each, arms in turns; 95 % intervals"
    label = setup.get("label")
    return f"{label}; {said}" if label else said


def base_of(document: Document) -> str | None:
    """The arm that the others are compared with; None if none was measured."""
    return baseline([name for name, arm in document.arms.items() if arm.run_s is not None])


def bases_of(documents: Sequence[Document]) -> list[str]:
    """The arms that others are compared with in some settings, each once."""
    return list(dict.fromkeys(base for one in documents if (base := base_of(one)) is not None))


def cells(document: Document, name: str) -> tuple[str, ...]:
    """The row of an arm, one text for each of COLUMNS."""
    arm = document.arms[name]
    if arm.run_s is None:
        return (name, *["-"] * (len(COLUMNS) - 1))
    return (
        name,
        f"{arm.run_s.mean:.2f}",
        f"{arm.metrics['mean_ttft_ms']:,.0f}",
        *(f"{share:.0%}" for share in shares(arm)),
        *(_speedup(document, name, metric) for metric in ("run", "ttft")),
    )


def shares(arm: ArmFigures) -> tuple[float, float, float]:
    """Of the reusable tokens: found on the device, on the host, and computed anew."""
    return arm.device_share, arm.host_share, max(0.0, 1 - arm.device_share - arm.host_share)


def _speedup(document: Document, name: str, metric: str) -> str:
    if name == base_of(document):
        return "1"
    found = over_baseline(document, name, metric)
    return "-" if found is None else claimed(found)


def over_baseline(document: Document, name: str, metric: str) -> SpeedupFigure | None:
    """The speed-up of an arm over the setting's baseline; None if it was not measured.

    Args:
        document: the setting.
        name: of the arm.
        metric: `run` or `ttft`.
    """
    base = base_of(document)
    return document.over(name, base, metric) if base is not None else None


def claimed(ratio: SpeedupFigure) -> str:
    """A speed-up with its interval, and what may not be claimed."""
    unsaid = {Claim.NO_DIFFERENCE: " no difference", Claim.UNKNOWN: " (one repeat)"}
    return f"{in_words(ratio)}{unsaid.get(ratio.claim, '')}"


def papers_arm(document: Document) -> str | None:
    """The arm that stands for the paper's system: the one with most of it at work."""
    return next((arm for arm in ("full", "prefetch", "evict") if arm in document.arms), None)


def of_paper(document: Document) -> float | None:
    """The paper's figure for a whole run, over the setting's baseline; None if it has none."""
    said = document.setup.get("paper") or {"speedups": {}}
    found: float | None = said["speedups"].get(base_of(document))
    return found


def note(documents: Sequence[Document]) -> str:
    """What pictures say of where they come from."""
    names = ", ".join(dict.fromkeys(document.recipe for document in documents))
    label = documents[0].setup.get("label")
    return f"{names}; {label}" if label else names


def paper(document: Document) -> list[str]:
    """The paper's figures beside ours, a line for each baseline; none if it has no such setting."""
    said = document.setup.get("paper")
    if said is None:
        return []
    ours = papers_arm(document)
    lines = []
    for base, speedup in said["speedups"].items():
        found = document.speedup(f"{ours}/{base}")
        here = f"here {ours}: {claimed(found)}" if found else "not measured here"
        lines.append(f"paper, KVFlow over {base}: {speedup:g} ({said['source']}); {here}")
    return lines


def paper_in_short(document: Document) -> str:
    """The paper's figures of a setting, in a table's cell."""
    said = document.setup.get("paper")
    if said is None:
        return "-"
    return ", ".join(f"{speedup:g} over {base}" for base, speedup in said["speedups"].items())


def plain(document: Document) -> list[str]:
    """What chats without a tag got, in a line; none if there were none."""
    times = [
        f"{arm.plain_ttft_ms:,.0f} ms with {name}"
        for name, arm in document.arms.items()
        if arm.plain_ttft_ms is not None
    ]
    return [f"first token of the plain chats: {', '.join(times)}"] if times else []


def goodput(document: Document) -> list[str]:
    """How many calls a second kept within the limits that were given, in a line; none without."""
    limits = document.setup.get("goodput")
    rates = [
        f"{arm.metrics['request_goodput']:.3g} with {name}"
        for name, arm in document.arms.items()
        if "request_goodput" in arm.metrics
    ]
    if not limits or not rates:
        return []
    within = " ".join(f"{name}:{most:g}" for name, most in limits.items())
    return [f"goodput, calls a second within {within}: {', '.join(rates)}"]
