import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvflow.client import tag
from kvflow.errors import UsageError
from kvflow.hints import Tag, parse

agents = st.text(
    st.characters(codec="utf-8", exclude_categories=("C", "Z")), min_size=1, max_size=128
)
names = agents.filter(lambda name: "/" not in name and name not in (".", ".."))
counts = st.integers(0, 1 << 24)


def test_tag_with_names_only_has_nothing_else() -> None:
    assert tag("app", "peer", "r42", "planner") == {
        "kvflow": {"client": "app", "workflow": "peer", "run": "r42", "agent": "planner"}
    }


def test_tag_with_steps_puts_them_beside_the_names() -> None:
    made = tag("app", "peer", "r42", "planner", steps={"planner": 0, "executor": 1})
    assert made["kvflow_steps"] == {"planner": 0, "executor": 1}


@given(names, names, names, agents, st.none() | counts, st.booleans())
def test_tag_is_read_by_the_server_as_it_was_meant(
    client: str, workflow: str, run: str, agent: str, fixed: int | None, final: bool
) -> None:
    parsed = parse(tag(client, workflow, run, agent, fixed, final, {agent: 3}))
    assert parsed.tag == Tag(client, workflow, run, agent, fixed, final, {agent: 3})
    assert not parsed.bad


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"client": ""}, "client is empty"),
        ({"run": "2026/01"}, 'kvflow.run has a "/"'),
        ({"client": ".."}, "has no / and is not . or .."),
        ({"run": 42}, "run is a whole number, expected text"),
        ({"agent": None}, "agent is missing"),
        ({"workflow": "x" * 129}, "129 characters, at most 128"),
        ({"fixed_tokens": -1}, "fixed_tokens is not within"),
        ({"fixed_tokens": 1.5}, "fixed_tokens is a fraction"),
        ({"steps": {"planner": {"deep": 1}}}, "kvflow_steps: 1 of 1 entries (wrong type)"),
    ],
)
def test_tag_that_the_server_would_ignore_is_refused(
    change: dict[str, Any], complaint: str
) -> None:
    given_names: dict[str, Any] = {
        "client": "app", "workflow": "peer", "run": "r1", "agent": "planner"
    }  # fmt: skip
    with pytest.raises(UsageError) as refusal:
        tag(**(given_names | change))
    assert complaint in str(refusal.value)


@pytest.mark.parametrize("module", ["kvflow.client", "kvflow.client.openai", "kvflow.client.sgl"])
def test_client_loads_none_of_what_it_adapts(module: str) -> None:
    heavy = ["openai", "sglang", "torch", "textual", "typer"]
    script = f"import sys, {module}; print([name for name in {heavy} if name in sys.modules])"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
