"""One session of `kvflow bench`: measure, keep, report, and the exit code that it comes to."""

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from kvflow.bench import document, fail_if, goodput, session
from kvflow.bench.environment import environment
from kvflow.bench.report import folder, tables, terminal
from kvflow.bench.result import Result, settings_of
from kvflow.cli import console
from kvflow.cli.bench_command import shown
from kvflow.cli.bench_progress import Progress
from kvflow.cli.bench_request import Request, order
from kvflow.cli.ending import Ending
from kvflow.errors import ExitCode, KvflowError

Form = Literal["table", "json", "csv", "md"]


def bench(
    request: Request,
    *,
    limits: str | None,
    conditions: Sequence[str],
    form: Form,
    out: Path | None,
) -> int:
    """Do what was asked for.

    Args:
        request: the command line.
        limits: of goodput, as typed.
        conditions: under which it fails, as typed.
        form: of what goes to stdout.
        out: folder for the results; None for one of its own under `results`.

    Returns:
        0; 1 if an arm failed; 5 if a condition holds; 128 and the number of the
        signal that ended it.

    Raises:
        KvflowError: the request makes no sense; or, once what was measured has been written, why
            the bench could not go on.
    """
    most = None if limits is None else goodput.parse(limits)
    plan = order(request)
    checks = [fail_if.parse(text, [arm.name for arm in plan.arms]) for text in conditions]
    machine = environment()  # which can take long: afterwards a second Ctrl-C would cost it all
    target = folder.make(out or _usual_folder(plan.suite.name))
    outcome = session.Outcome(plan.suite, plan.arms, plan.effort)
    unwritten = None
    with Ending() as ending:
        with Progress() as progress:
            session.run(outcome, plan.rig, progress)
        found = document.result(outcome, machine, shown(sys.argv[1:]), most)
        if found is not None:
            unwritten = _write(found, outcome, target, form)
        else:
            target.rmdir()
    for setting, arm, why in outcome.broken:
        console.err().print(f"failed: {arm} in {setting}, {why}", markup=False)
    if outcome.interrupted:
        console.err().print("interrupted: this is what was measured until then")
    _raise_first(outcome.error, unwritten, outcome.left_undone)
    if outcome.interrupted:
        return ending.exit_status
    if outcome.broken:
        return ExitCode.FAILURE
    return _check(found, checks)


def _usual_folder(name: str) -> Path:
    return Path("results") / f"{time.strftime('%Y%m%d-%H%M%S')}-{name}"


def _write(found: Result, outcome: session.Outcome, target: Path, form: Form) -> KvflowError | None:
    """Fill the folder and show the result, neither at the cost of the other.

    A signal ends the filling: what is there by then stays, and the outcome is an interrupted one.

    Returns:
        Why the folder could not be filled.
    """
    try:
        pictures = folder.fill(target, found, outcome.measured)
    except KvflowError as error:
        return error
    except KeyboardInterrupt:
        outcome.interrupted = True
        return None
    finally:
        _show(found, form)
    without = ""
    if pictures.failure:
        without = f"; without pictures: {pictures.failure}"
    elif not pictures.names:
        without = "; without pictures, which need matplotlib: kvflow[plot]"
    console.err().print(f"report: {target / 'report.md'}{without}", markup=False)
    return None


def _show(found: Result, form: Form) -> None:
    if form == "json":
        sys.stdout.write(f"{found.model_dump_json(indent=1)}\n")
    elif form == "csv":
        sys.stdout.write(tables.as_csv(settings_of(found)))
    elif form == "md":
        sys.stdout.write(tables.as_markdown(settings_of(found)))
    else:
        terminal.show(console.out(), settings_of(found))


def _raise_first(*errors: KvflowError | None) -> None:
    """Raise the first of some errors, and tell the others before."""
    found = [error for error in errors if error is not None]
    for error in found[1:]:
        console.err().print(str(error), markup=False)
    if found:
        raise found[0]


def _check(found: Result | None, checks: Sequence[fail_if.Condition]) -> ExitCode:
    code = ExitCode.OK
    for one in settings_of(found) if found is not None else []:
        for condition in checks:
            if condition.holds(one):
                where = one.setup["setting"]
                console.err().print(f"check failed in {where}: {condition.text}", markup=False)
                code = ExitCode.CHECK_FAILED
    return code
