import json
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from kvflow import __version__
from kvflow.cli import app as app_module
from kvflow.errors import ExitCode, UsageError

HEAVY = ("sglang", "torch", "textual", "matplotlib", "pydantic", "httpx2", "yaml")


def loaded_by(code: str) -> list[str]:
    script = f"{code}\nimport json, sys; print(json.dumps(sorted(sys.modules)))"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    names = json.loads(run.stdout.splitlines()[-1])
    return [name for name in HEAVY if name in names]


def test_importing_kvflow_loads_nothing_heavy():
    assert loaded_by("import kvflow") == []


def test_help_loads_nothing_heavy():
    code = (
        "from typer.testing import CliRunner\n"
        "from kvflow.cli.app import app\n"
        "assert CliRunner().invoke(app, ['--help']).exit_code == 0"
    )
    assert loaded_by(code) == []


def test_version_is_that_of_the_package():
    result = CliRunner().invoke(app_module.app, ["--version"])
    assert (result.exit_code, result.stdout) == (0, f"kvflow {__version__}\n")


@pytest.mark.parametrize("words", [["serv"], ["recipe", "chek"], ["--verison"]])
def test_misspelt_command_is_a_usage_error_with_a_suggestion(words):
    result = CliRunner().invoke(app_module.app, words)
    assert result.exit_code == ExitCode.USAGE
    assert "Did you mean" in result.output or "Possible options" in result.output


def test_expected_failure_ends_as_three_lines_and_its_exit_code(monkeypatch, capsys):
    def fail() -> None:
        raise UsageError("no such thing", "it was never there", "look elsewhere")

    monkeypatch.setattr(app_module, "app", fail)
    with pytest.raises(SystemExit) as ended:
        app_module.main()
    assert ended.value.code == ExitCode.USAGE
    assert capsys.readouterr().err.splitlines() == [
        "error: no such thing",
        "  why: it was never there",
        " hint: look elsewhere",
    ]
