"""Two results side by side: what has become faster or slower between them.

What the machine did between two benches is in every time, so that times alone show nothing. It is
not in the speed-up over an arm that took its turns in the same repeats: only that is compared.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from pydantic import ValidationError

from kvflow.bench.arms import baseline
from kvflow.bench.report.folder import SUMMARY
from kvflow.bench.result import RESULT, Document, settings_of
from kvflow.bench.stats import Ratio, unpaired
from kvflow.errors import UsageError

_CONDITIONS = (
    "model", "device", "dtype", "pool_tokens", "link_ratio", "fixed_tokens", "dynamic_tokens",
    "output_tokens", "runs", "concurrency", "plain_lanes",
)  # fmt: skip


class Change(NamedTuple):
    """One arm of one setting in both results.

    Attributes:
        setting: its name.
        arm: likewise.
        base: the arm that speed-ups are over, in both results.
        before_s: mean seconds of a run in the first result.
        after_s: in the second one.
        times: how many times as fast that is, of which nothing can be claimed.
        run: how many times as large the arm's speed-up over `base` is in the second result; None of
            `base` itself, and where a result has no repeat with both.
        ttft: likewise, of the first token.
    """

    setting: str
    arm: str
    base: str
    before_s: float
    after_s: float
    times: float
    run: Ratio | None
    ttft: Ratio | None


def read(path: Path) -> list[Document]:
    """The settings of a result: a results folder, or a file with the JSON of a bench.

    Raises:
        UsageError: it is neither.
    """
    file = path / SUMMARY if path.is_dir() else path
    try:
        return settings_of(RESULT.validate_json(file.read_bytes()))
    except OSError as error:
        raise UsageError(
            f"{path} holds no result", error.strerror or str(error), "give a results folder"
        ) from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "the top"
        raise UsageError(
            f"{file} is no result of kvflow bench", f"{where}: {first['msg']}"
        ) from None


def changes(before: Sequence[Document], after: Sequence[Document]) -> list[Change]:
    """What both results have measured.

    Raises:
        UsageError: nothing.
    """
    found = list(_changes(before, after))
    if not found:
        raise UsageError(
            "the results have no arm of a setting in common",
            f"the first has {_listed(before)}; the second {_listed(after)}",
        )
    return found


def _changes(before: Sequence[Document], after: Sequence[Document]) -> Iterator[Change]:
    for first, second in _in_both(before, after):
        both = [name for name in _times(second) if name in _times(first)]
        base = baseline(both)
        if base is None:
            continue
        for name in both:
            before_s, after_s = _times(first)[name], _times(second)[name]
            yield Change(
                second.setup["setting"],
                name,
                base,
                before_s,
                after_s,
                before_s / after_s,
                _growth(first, second, name, base, "run_s_by_repeat"),
                _growth(first, second, name, base, "ttft_s_by_repeat"),
            )


def _in_both(
    before: Sequence[Document], after: Sequence[Document]
) -> Iterator[tuple[Document, Document]]:
    earlier = {(one.recipe, one.setup["setting"]): one for one in before}
    for second in after:
        first = earlier.get((second.recipe, second.setup["setting"]))
        if first is not None:
            yield first, second


def _times(document: Document) -> Mapping[str, float]:
    """Mean seconds of a run, by arm that was measured."""
    return {name: arm.run_s.mean for name, arm in document.arms.items() if arm.run_s is not None}


def _growth(first: Document, second: Document, arm: str, base: str, by_repeat: str) -> Ratio | None:
    if arm == base:
        return None
    before, after = (_in_units_of(base, document, arm, by_repeat) for document in (first, second))
    return unpaired(after, before) if before and after else None


def _in_units_of(base: str, document: Document, arm: str, by_repeat: str) -> list[float]:
    """An arm's times, each over that of the base in the same repeat."""
    own: dict[int, float] = getattr(document.arms[arm], by_repeat)
    other: dict[int, float] = getattr(document.arms[base], by_repeat)
    return [seconds / other[repeat] for repeat, seconds in own.items() if repeat in other]


def _listed(documents: Sequence[Document]) -> str:
    return ", ".join(f"{d.setup['setting']} ({', '.join(d.arms)})" for d in documents) or "nothing"


def differences(before: Sequence[Document], after: Sequence[Document]) -> list[str]:
    """In which ways the two were not measured alike, as a person should know before believing."""
    pairs = list(_in_both(before, after))
    found = [
        text for first, second in pairs for text in _unlike(first.environment, second.environment)
    ]
    for first, second in pairs:
        setups = ({name: one.setup.get(name) for name in _CONDITIONS} for one in (first, second))
        where = f"{second.setup['setting']}: " if len(pairs) > 1 else ""
        found += [f"{where}{text}" for text in _unlike(*setups)]
    return list(dict.fromkeys(found))


def _unlike(one: Mapping[str, object], two: Mapping[str, object]) -> Iterator[str]:
    for name in dict.fromkeys((*one, *two)):
        if one.get(name) != two.get(name):
            yield f"{name}: {one.get(name)} before, {two.get(name)} after"
