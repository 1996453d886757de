"""Two results side by side: what has become faster or slower between them."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from pydantic import ValidationError

from kvflow.bench.report.folder import SUMMARY
from kvflow.bench.result import RESULT, ArmFigures, Document, settings_of
from kvflow.bench.stats import Ratio, unpaired
from kvflow.errors import UsageError


class Change(NamedTuple):
    """One arm of one setting in both results.

    Attributes:
        setting: its name.
        arm: likewise.
        before_s: mean seconds of a run in the first result.
        after_s: in the second one.
        run: how many times as fast the second one is; its interval is of times that were not taken
            in turns, so what the machine did meanwhile is in it.
        ttft: likewise, of the first token.
    """

    setting: str
    arm: str
    before_s: float
    after_s: float
    run: Ratio
    ttft: Ratio


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
    earlier = {(d.recipe, d.setup["setting"]): d for d in before}
    for document in after:
        other = earlier.get((document.recipe, document.setup["setting"]))
        if other is None:
            continue
        for name, arm in document.arms.items():
            old = other.arms.get(name)
            if old is not None and old.run_s is not None and arm.run_s is not None:
                yield Change(
                    document.setup["setting"],
                    name,
                    old.run_s.mean,
                    arm.run_s.mean,
                    unpaired(_times(arm, "run_s"), _times(old, "run_s")),
                    unpaired(_times(arm, "ttft_s"), _times(old, "ttft_s")),
                )


def _times(arm: ArmFigures, what: str) -> list[float]:
    by_repeat: dict[int, float] = getattr(arm, f"{what}_by_repeat")
    return list(by_repeat.values())


def _listed(documents: Sequence[Document]) -> str:
    return ", ".join(f"{d.setup['setting']} ({', '.join(d.arms)})" for d in documents) or "nothing"


def differences(before: Sequence[Document], after: Sequence[Document]) -> list[str]:
    """In which ways the two were not measured alike, as a person should know before believing."""
    if not before or not after:
        return []
    found = []
    for name in sorted(before[0].environment.keys() | after[0].environment.keys()):
        one, two = before[0].environment.get(name), after[0].environment.get(name)
        if one != two:
            found.append(f"{name}: {one} before, {two} after")
    for name in ("pool_tokens", "link_ratio", "output_tokens", "dynamic_tokens", "runs"):
        one, two = before[0].setup.get(name), after[0].setup.get(name)
        if one != two:
            found.append(f"{name}: {one} before, {two} after")
    return found
