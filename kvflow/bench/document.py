"""From what was measured to the document that others read."""

from typing import Any

from kvflow.bench import figures
from kvflow.bench.environment import Environment
from kvflow.bench.goodput import Limits
from kvflow.bench.result import Document, Result, SpeedupFigure, SuiteDocument
from kvflow.bench.session import Measured, Outcome
from kvflow.bench.suites import SUITES
from kvflow.bench.verdict import Evidence, judge


def result(
    outcome: Outcome, machine: Environment, command: str, limits: Limits | None
) -> Result | None:
    """Everything that was measured; None if nothing was."""
    documents = [
        document(measured, outcome, machine, command, limits)
        for measured in outcome.measured
        if measured.trials
    ]
    if not documents:
        return None
    if len(outcome.suite.settings) == 1:
        return documents[0]
    return SuiteDocument(
        suite=outcome.suite.name,
        about=outcome.suite.about,
        environment=machine,
        settings=documents,
    )


def document(
    measured: Measured, outcome: Outcome, machine: Environment, command: str, limits: Limits | None
) -> Document:
    """What was measured in one setting."""
    arms = figures.arms(measured, limits)
    speedups = figures.speedups(measured)
    of_ttft = speedups["ttft"]
    evidence = Evidence(
        arms=arms,
        runs={pair: ratio for pair, ratio in speedups.items() if isinstance(ratio, SpeedupFigure)},
        ttft=of_ttft if isinstance(of_ttft, dict) else {},
        recompute_ms=_number(measured.facts.get("recompute_ms")),
        recompute_after_ms=_number(measured.facts.get("recompute_after_ms")),
        link_ratio=measured.setting.link_ratio,
        emulated="label" in measured.facts,
        takes=_takes(measured, outcome),
    )
    return Document(
        recipe=measured.setting.served.recipe.name,
        setup=_setup(measured, outcome, command, limits),
        environment=machine,
        arms=arms,
        speedups=speedups,
        verdict=judge(evidence),
    )


def _number(fact: object) -> float | None:
    return fact if isinstance(fact, float) else None


def _takes(measured: Measured, outcome: Outcome) -> frozenset[str]:
    """The flags of sizes and ratios that another bench like this one would not refuse."""
    if outcome.suite.name in SUITES:
        return frozenset()
    flags = {"--fixed", "--output"}
    if "pool_tokens" in measured.facts:  # servers of its own
        flags.add("--pool-ratio")
    if "label" in measured.facts:
        flags.add("--link-ratio")
    return frozenset(flags)


def _setup(
    measured: Measured, outcome: Outcome, command: str, limits: Limits | None
) -> dict[str, Any]:
    setting = measured.setting
    recipe = setting.driven.recipe
    found: dict[str, Any] = {
        "setting": setting.name,
        "command": command,
        "arms": [arm.name for arm in outcome.arms],
        "repeats": outcome.effort.repeats,
        "runs": setting.runs,
        "concurrency": setting.concurrency,
        "pool_ratio": setting.pool_ratio,
        "link_ratio": setting.link_ratio,
        "agents": len(recipe.agents),
        "dynamic_tokens": str(recipe.workload.dynamic_tokens),
        "output_tokens": sorted({spec.output_tokens for spec in recipe.agents.values()}),
        "seed": recipe.workload.seed,
        "plain_lanes": setting.plain_lanes,
        "interrupted": outcome.interrupted,
        **measured.facts,
    }
    if limits is not None:
        found["goodput"] = dict(limits)
    if setting.paper is not None:
        found["paper"] = {
            "speedups": dict(setting.paper.speedups),
            "source": setting.paper.source,
        }
    return found
