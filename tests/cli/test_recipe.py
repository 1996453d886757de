import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from support.recipes import write_recipe
from typer.testing import CliRunner, Result

from kvflow.cli.recipe import app
from kvflow.errors import ExitCode, KvflowError, RecipeError, UsageError

PEER: dict[str, dict[str, object]] = {
    "planner": {"fixed_tokens": 8},
    "executor": {"fixed_tokens": 8, "after": "planner", "fan_out": "1..4"},
    "expresser": {
        "fixed_tokens": 16,
        "after": {"any": ["executor", {"agent": "reviewer", "p": 0.3}]},
    },
    "reviewer": {"fixed_tokens": 8, "after": "expresser"},
}


@pytest.fixture
def peer(tmp_path: Path) -> str:
    return str(write_recipe(tmp_path, PEER, repeat=True))


@pytest.fixture
def broken(tmp_path: Path) -> str:
    path = tmp_path / "broken.yaml"
    path.write_text("kvflow: 1\nname: x\nagents:\n  a: {fixed_token: 8}\n", encoding="utf-8")
    return str(path)


@pytest.fixture(autouse=True)
def _terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")


def recipe(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


def data(*arguments: str) -> dict[str, Any]:
    result = recipe(*arguments, "--json")
    document = json.loads(result.stdout)
    assert document.pop("schema_version") == 1
    assert isinstance(document, dict)
    return document


def error_of(result: Result) -> KvflowError:
    assert isinstance(result.exception, KvflowError)
    return result.exception


def test_check_valid_recipe_is_summed_up(peer: str) -> None:
    result = recipe("check", peer)
    assert result.exit_code == ExitCode.OK
    assert result.stdout == f"{peer}: valid: 4 agents, fixed prefixes of 8 to 16 tokens\n"


def test_check_recipe_with_prompts_tells_their_size(tmp_path: Path) -> None:
    path = write_recipe(tmp_path, {"a": {}})
    assert recipe("check", str(path)).stdout.endswith("1 agent, prompts of 10 characters\n")


def test_check_tells_what_is_wrong_on_stderr_and_goes_on(peer: str, broken: str) -> None:
    result = recipe("check", broken, peer)
    assert result.exit_code == ExitCode.USAGE
    assert (
        f"error: {broken}:4:3: agents.a: give either prompt or fixed_tokens" in result.stderr
        or (
            f"error: {broken}:4:7: agents.a.fixed_token: unknown key 'fixed_token'" in result.stderr
        )
    )
    assert result.stdout.startswith(f"{peer}: valid")


def test_check_json_has_a_report_for_each_recipe(peer: str, broken: str) -> None:
    good, bad = data("check", peer, broken)["recipes"]
    assert good["valid"]
    assert good["agents"]["expresser"] == {"fixed_tokens": 16, "prompt_characters": None}
    assert not bad["valid"]
    assert bad["problems"][0] == {
        "file": broken,
        "line": 4,
        "column": 7,
        "at": "agents.a.fixed_token",
        "message": "unknown key 'fixed_token' (did you mean 'fixed_tokens'?)",
    }


def test_check_json_of_a_file_that_is_not_there_has_a_message() -> None:
    (report,) = data("check", "absent")["recipes"]
    assert "no such file" in report["problems"][0]["message"]


def test_graph_draws_the_recipe(peer: str) -> None:
    rows = recipe("graph", peer).stdout.splitlines()
    assert rows[0].strip() == "(start)"
    assert "back  reviewer → expresser (0.3)" in rows


def test_graph_ascii_is_ascii(peer: str) -> None:
    assert recipe("graph", peer, "--ascii").stdout.isascii()


def test_graph_on_a_terminal_without_boxes_is_ascii(
    peer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", written)
        app(["graph", peer], standalone_mode=False)
    written.seek(0)
    assert "(start)" in written.read()


def test_graph_mermaid_is_a_flowchart(peer: str) -> None:
    assert recipe("graph", peer, "--mermaid").stdout.startswith("flowchart TD\n")


def test_graph_running_shows_the_steps_of_all(peer: str) -> None:
    text = recipe("graph", peer, "--done", "planner,executor,expresser", "--running", "reviewer")
    labels = (
        "planner: 1 step",
        "executor x1..4: 2 steps",
        "expresser: 1 step",
        "reviewer: running",
    )
    assert all(f"[{label}]" in text.stdout for label in labels)


def test_graph_json_holds_agents_arrows_and_steps(peer: str) -> None:
    document = data("graph", peer, "--running", "planner")
    assert document["repeat"] is True
    assert {agent["name"]: agent["steps"] for agent in document["agents"]} == {
        "planner": 0,
        "executor": 1,
        "expresser": 2,
        "reviewer": 3,
    }
    assert document["agents"][2]["after"] == PEER["expresser"]["after"]
    assert {"source": "reviewer", "target": "expresser", "p": 0.3} in document["arrows"]


def test_graph_json_without_a_moment_has_no_steps(peer: str) -> None:
    assert all("steps" not in agent for agent in data("graph", peer)["agents"])


@pytest.mark.parametrize("option", ["--running", "--done"])
def test_graph_unknown_agent_is_suggested(peer: str, option: str) -> None:
    error = error_of(recipe("graph", peer, option, "plannr"))
    assert isinstance(error, UsageError)
    assert error.what == "no agent 'plannr' in this recipe (did you mean 'planner'?)"


@pytest.mark.parametrize(
    "flags", [("--mermaid", "--json"), ("--mermaid", "--ascii"), ("--ascii", "--json")]
)
def test_graph_two_forms_at_once_are_refused(peer: str, flags: tuple[str, str]) -> None:
    assert isinstance(error_of(recipe("graph", peer, *flags)), UsageError)


def test_graph_broken_recipe_is_a_recipe_error(broken: str) -> None:
    assert isinstance(error_of(recipe("graph", broken)), RecipeError)


def test_graph_finds_shipped_recipes_by_name() -> None:
    assert "[expresser]" in recipe("graph", "peer").stdout


def test_list_has_a_line_for_each_shipped_recipe() -> None:
    lines = recipe("list").stdout.splitlines()
    assert [line.split()[0] for line in lines] == [
        "branching-10",
        "peer",
        "plan-execute",
        "sequential-10",
        "software-company",
        "supervisor",
    ]


def test_list_json_tells_sizes() -> None:
    found = {shipped["name"]: shipped for shipped in data("list")["recipes"]}
    assert found["sequential-10"]["agents"]["a0"]["fixed_tokens"] == 1024
    assert found["peer"]["agents"]["planner"]["prompt_characters"] > 1000


def test_schema_is_a_json_schema() -> None:
    schema = json.loads(recipe("schema").stdout)
    jsonschema.Draft202012Validator.check_schema(schema)
    assert set(schema["required"]) == {"kvflow", "name", "agents"}


def test_module_import_is_light() -> None:
    code = "import sys, kvflow.cli.recipe; print(*sorted(sys.modules))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(run.stdout.split())
    assert loaded.isdisjoint({"yaml", "kvflow.recipe.load", "kvflow.runs", "rich.console", "torch"})
