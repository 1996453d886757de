"""The result in words: what to expect on this box, why, and which setting would change it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from kvflow.bench.arms import ARMS, baseline
from kvflow.bench.result import ArmFigures, SpeedupFigure, Verdict
from kvflow.bench.stats import Claim

_ALL_RESIDENT = 0.97
_SMALL_PREFIX = 0.05  # of a call, that computing its prefix anew takes
_FEW_TOKENS = 300  # published prompts are often shorter; not worth keeping
_LITTLE_PREFILL = 0.15  # of a call, until its first token
_MOSTLY_HOST = 0.5
_NEARLY_ALL = 0.9  # of what can be reused, was there before a call asked
_WIDE = 1.25  # upper over lower end of an interval
_ALIKE = 1.05  # an interval within this and its inverse shows that two are as good as equal
_OFTEN_LATE = 0.3
_DRIFT = 1.3  # of what recomputing costs, from before to after
_MORE_MISMATCH, _MORE_ANSWERS = 0.05, 3  # than stock's own; fewer answers may be chance


class Finding(NamedTuple):
    """One cause, and what would change it (may be nothing).

    Attributes:
        reason: the cause.
        advice: what would change it.
        flag: without which the advice cannot be taken, if it needs one.
    """

    reason: str
    advice: str = ""
    flag: str = ""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a verdict rests on.

    Attributes:
        arms: figures by arm.
        runs: speed-ups of whole runs, by `arm/baseline`.
        ttft: of the first token.
        recompute_ms: what computing the longest prefix costs; None if it was not measured.
        recompute_after_ms: the same after the last turn.
        link_ratio: what loading it was to take of that; None without an emulated link.
        emulated: whether link and pool are those of the CPU engine.
        takes: flags that would change what was measured, as far as this bench does not refuse them.
    """

    arms: Mapping[str, ArmFigures]
    runs: Mapping[str, SpeedupFigure]
    ttft: Mapping[str, SpeedupFigure]
    recompute_ms: float | None
    recompute_after_ms: float | None
    link_ratio: float | None
    emulated: bool
    takes: frozenset[str]


def judge(evidence: Evidence) -> Verdict:
    """The verdict on kvflow (prefetch where it was measured) against stock, or less of kvflow."""
    measured = [name for name, arm in evidence.arms.items() if arm.run_s is not None]
    base = baseline(measured)
    others = [name for name in measured if name != base]
    ours = _first(others, ("prefetch", "full", "evict", "off"))
    findings = [Finding(f"{name}: {arm.failure}") for name, arm in evidence.arms.items()
                if arm.failure]  # fmt: skip
    if ours is None or base is None or f"{ours}/{base}" not in evidence.runs:
        headline = "Nothing can be said: kvflow and what it is compared with were not both measured"
        return _verdict(f"{headline}.", findings, evidence.takes)
    findings += _reasons(evidence, ours, base)
    return _verdict(_headline(evidence, ours, base), findings, evidence.takes)


def _verdict(headline: str, findings: list[Finding], takes: frozenset[str]) -> Verdict:
    usable = [one.advice for one in findings if not one.flag or one.flag in takes]
    return Verdict(
        headline=headline,
        reasons=[finding.reason for finding in findings],
        advice=list(dict.fromkeys(advice for advice in usable if advice)),
    )


def _first(measured: list[str], wanted: tuple[str, ...]) -> str | None:
    return next((name for name in wanted if name in measured), None)


def in_words(ratio: SpeedupFigure) -> str:
    """A speed-up with its interval."""
    if ratio.low is None or ratio.high is None:
        return f"{ratio.mean:.2f}"
    return f"{ratio.mean:.2f} ({ratio.low:.2f} to {ratio.high:.2f})"


def _headline(evidence: Evidence, ours: str, base: str) -> str:
    runs, ttft = evidence.runs[f"{ours}/{base}"], evidence.ttft[f"{ours}/{base}"]
    us, them = f"kvflow ({ours})", ARMS[base].label
    match runs.claim:
        case Claim.FASTER:
            said = f"Expect {us} to finish a run {in_words(runs)} times as fast as {them}"
        case Claim.SLOWER:
            said = f"Expect {us} to be slower: {in_words(runs)} times as fast as {them}"
        case Claim.NO_DIFFERENCE:
            between = f"between {us} and {them}: a run is {in_words(runs)} times as fast"
            shown = "Expect no difference" if _is_alike(runs) else "No difference could be shown"
            said = f"{shown} {between}"
        case Claim.UNKNOWN:
            said = (
                f"A single repeat shows nothing yet: {us} was {runs.mean:.2f} times as fast as "
                f"{them}"
            )
    if ttft.claim in (Claim.FASTER, Claim.SLOWER):
        said += f"; the first token comes {in_words(ttft)} times as fast"
    return f"{said}."


def _reasons(evidence: Evidence, ours: str, base: str) -> Iterator[Finding]:
    own, other = evidence.arms[ours], evidence.arms[base]
    yield Finding(_where(own, ours, other, base))
    yield from _unknown(own, ours)
    if base != "limit":
        yield from _pressure(other, base)
    if evidence.runs[f"{ours}/{base}"].claim is not Claim.FASTER:
        yield from _small_prompts(evidence, other)
    yield from _link(evidence, ours, base)
    yield from _drift(evidence)
    yield from _lateness(own, evidence.takes)
    yield from _limit(evidence, own, ours, base)
    yield from _noise(evidence.runs[f"{ours}/{base}"])
    yield from _answers(own, ours, other, base)
    if evidence.emulated:
        yield Finding("CPU engine, emulated link: ratios mean something here, times do not.")


def _where(own: ArmFigures, ours: str, other: ArmFigures, base: str) -> str:
    def told(arm: ArmFigures, name: str) -> str:
        anew = max(0.0, 1 - arm.device_share - arm.host_share)
        return (
            f"{name} found {arm.device_share:.0%} on the device{_ahead(arm)}, loaded "
            f"{arm.host_share:.0%} from the host on demand and computed {anew:.0%} anew"
        )

    return f"Of the prompt tokens that can be reused {told(other, base)}; {told(own, ours)}."


def _ahead(arm: ArmFigures) -> str:
    share = _prefetched(arm)
    return f" ({share:.0%} prefetched)" if share else ""


def _prefetched(arm: ArmFigures) -> float:
    """How much of what was on the device had been brought there before a call asked."""
    used = arm.engine.get("prefetched_used_tokens", 0.0)
    return used / arm.reusable_tokens if arm.reusable_tokens else 0.0


def _unknown(own: ArmFigures, ours: str) -> Iterator[Finding]:
    unknown, calls = (own.engine.get(name, 0) for name in ("unknown_agents", "tagged_calls"))
    if unknown:
        yield Finding(
            f"The server does not know the agents of {unknown:.0f} of the {calls:.0f} calls of "
            f"{ours}: they have no steps, and nothing is prefetched for them. It learns of a "
            "workflow by kvflow serve --recipe."
        )


def _pressure(other: ArmFigures, base: str) -> Iterator[Finding]:
    call_ms, ttft_ms = other.metrics["mean_e2el_ms"], other.metrics["mean_ttft_ms"]
    if other.device_share - _prefetched(other) >= _ALL_RESIDENT:
        yield Finding(
            f"The pool holds nearly all already: {base} had next to nothing to bring back.",
            "More agents, longer prompts or more runs at once press the pool: --pool-ratio 0.43",
            "--pool-ratio",
        )
    if ttft_ms < _LITTLE_PREFILL * call_ms:
        yield Finding(
            f"Decoding dominates: the first token of {base} comes after {ttft_ms / call_ms:.0%} "
            "of a call, and a cache does little for the rest.",
            "Shorter answers: --output 16",
            "--output",
        )


def _small_prompts(evidence: Evidence, other: ArmFigures) -> Iterator[Finding]:
    call_ms, recompute_ms = other.metrics["mean_e2el_ms"], evidence.recompute_ms
    tokens = other.reusable_tokens / other.metrics["completed"]
    if recompute_ms is not None and recompute_ms < _SMALL_PREFIX * call_ms:
        yield Finding(
            f"The prompts are too small to matter much: computing the longest prefix takes "
            f"{recompute_ms:.0f} ms of a call of {call_ms:.0f} ms.",
            "Longer prompts: --fixed 4096",
            "--fixed",
        )
    elif recompute_ms is None and tokens < _FEW_TOKENS:
        yield Finding(
            f"The prompts are too small to matter much: {tokens:.0f} reusable tokens a call.",
            "Longer prompts: --fixed 4096",
            "--fixed",
        )


def _link(evidence: Evidence, ours: str, base: str) -> Iterator[Finding]:
    ratio = evidence.ttft[f"{ours}/{base}"]
    hidden = ours in ("prefetch", "full") and evidence.arms[ours].device_share >= _NEARLY_ALL
    if hidden and evidence.arms[base].host_share >= _MOSTLY_HOST and _is_alike(ratio):
        yield Finding(
            f"The link is fast enough to hide: {base} loads prefixes from the host when they are "
            f"asked for, and its first token comes as soon ({in_words(ratio)}).",
            "A slower link, or prompts that are faster to compute: --link-ratio 1",
            "--link-ratio",
        )


def _drift(evidence: Evidence) -> Iterator[Finding]:
    """Whether loading took the share of recomputing that it was to take."""
    before, after = evidence.recompute_ms, evidence.recompute_after_ms
    if before is None or after is None or evidence.link_ratio is None:
        return
    if not 1 / _DRIFT <= before / after <= _DRIFT:
        yield Finding(
            f"Recomputing the longest prefix took {before:.0f} ms before and {after:.0f} ms after: "
            "other work made the link ratio "
            f"{evidence.link_ratio * before / after:.2f} in the end, not {evidence.link_ratio:g}.",
            "Measure again while nothing else runs on this machine",
        )


def _lateness(own: ArmFigures, takes: frozenset[str]) -> Iterator[Finding]:
    used = own.engine.get("prefetched_used_tokens", 0)
    late, wasted = (own.engine.get(f"prefetched_{what}_tokens", 0) for what in ("late", "wasted"))
    if used and late / used > _OFTEN_LATE:
        yield Finding(
            f"{late / used:.0%} of the prefetched tokens that a call found were still on their "
            "way.",
            "Longer answers or a faster link leave more time: --output, --link-ratio"
            if "--link-ratio" in takes
            else "Longer answers leave more time: --output",
            "--output",
        )
    loaded = own.engine.get("prefetched_tokens", 0)
    if loaded and wasted / loaded > _OFTEN_LATE:
        yield Finding(f"{wasted / loaded:.0%} of what was prefetched was evicted unused.")


def _limit(evidence: Evidence, own: ArmFigures, ours: str, base: str) -> Iterator[Finding]:
    ratio = evidence.runs.get(f"{ours}/limit")
    if ratio is None or ratio.claim is Claim.UNKNOWN:
        return
    resident = evidence.arms["limit"].device_share
    if resident < _ALL_RESIDENT and resident < own.device_share:
        yield Finding(
            f"limit found only {resident:.0%} on the device: its pool does not hold everything, "
            "and it limits nothing here."
        )
        return
    if base == "limit":
        return  # the headline says it
    speed = f"a run of {ours} is {in_words(ratio)} times as fast"
    if ratio.claim is Claim.SLOWER:
        yield Finding(f"A server with room for everything is faster still: {speed}.")
    elif _is_alike(ratio):
        yield Finding(f"A server with room for everything would gain next to nothing: {speed}.")
    elif ratio.claim is Claim.NO_DIFFERENCE:
        yield Finding(f"No difference from room for everything could be shown: {speed}.")
    else:
        yield Finding(f"A server with room for everything is no faster: {speed}.")


def _is_alike(ratio: SpeedupFigure) -> bool:
    """Whether two have been shown to be as good as equal, which a wide interval does not."""
    if ratio.low is None or ratio.high is None:
        return False
    return ratio.low >= 1 / _ALIKE and ratio.high <= _ALIKE


def _is_wide(ratio: SpeedupFigure) -> bool:
    if ratio.low is None or ratio.high is None:
        return False
    return ratio.high / ratio.low > _WIDE


def _noise(ratio: SpeedupFigure) -> Iterator[Finding]:
    if _is_wide(ratio):
        yield Finding(
            f"The interval is wide, {in_words(ratio)}: the machine is noisy, or the repeats are "
            "few.",
            "More repeats on a quiet machine: --repeats 10",
        )


def _answers(own: ArmFigures, ours: str, other: ArmFigures, base: str) -> Iterator[Finding]:
    if own.mismatch is None or other.mismatch is None:
        return
    said = (
        f"{own.mismatch:.0%} of the answers of {ours} with a warm cache differ from those of "
        f"{base} with an empty one ({own.answers_compared} compared); so do {other.mismatch:.0%} "
        f"of the answers of {base} with a warm one."
    )
    more = own.mismatch - other.mismatch
    worse = more > _MORE_MISMATCH and more * own.answers_compared >= _MORE_ANSWERS
    yield Finding(said, "This should not be: please report it with the results" if worse else "")
