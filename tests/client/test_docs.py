"""The examples of docs/client.md do what the page says."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import support.engine  # noqa: F401 - before SGLang
from support.fake_app_server import TEXT, FakeAppServer, Seen

pytestmark = pytest.mark.engine  # two of them need what comes with SGLang

PAGE = (Path(__file__).parents[2] / "docs" / "client.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
WRITTEN_URL = "http://127.0.0.1:30000"


@pytest.fixture
def fake() -> Iterator[FakeAppServer]:
    with FakeAppServer().running() as server:
        yield server


def execute(example: str, fake: FakeAppServer, tmp_path: Path) -> None:
    """Run an example as the file that its reader would save it as."""
    assert WRITTEN_URL in example
    path = tmp_path / "example.py"
    path.write_text(example.replace(WRITTEN_URL, fake.url), encoding="utf-8")
    exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), {"__name__": "example"})


def runs_of(calls: list[Seen]) -> set[str]:
    return {call.params["kvflow"]["run"] for call in calls}


@pytest.mark.parametrize("example", EXAMPLES[:2])
def test_example_of_two_agents_tags_both_calls_and_ends_their_run(example, fake, tmp_path):
    execute(example, fake, tmp_path)
    assert fake.agents == ["planner", "executor"]
    assert TEXT in str(fake.calls[1].body)  # what the planner said
    (run,) = runs_of(fake.calls)
    assert fake.ended == [f"/kvflow/runs/app/{run}/end"]


def test_example_of_an_own_graph_sends_its_steps_and_ends_its_run(fake, tmp_path):
    execute(EXAMPLES[2], fake, tmp_path)
    given = [(call.agent, call.params["kvflow_steps"]) for call in fake.calls]
    assert given == [
        ("router", {"router": 0, "billing": 1, "support": 1}),
        ("billing", {"router": 1, "billing": 0, "support": 2}),
    ]
    (run,) = runs_of(fake.calls)
    assert fake.ended == [f"/kvflow/runs/app/{run}/end"]


def test_page_has_three_examples():
    assert len(EXAMPLES) == 3
