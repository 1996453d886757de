import json
from typing import Any

import pytest

from kvflow.engine import workflows
from kvflow.engine.http_errors import ControlError
from kvflow.engine.workflows import Workflows, read

RECIPE: dict[str, Any] = {
    "kvflow": 1,
    "name": "work",
    "agents": {
        "a": {"prompt": "You are a."},
        "b": {"prompt": "You are b.", "after": {"agent": "a", "p": 0.5}},
    },
    "repeat": True,
}


def body(**changes: Any) -> dict[str, Any]:
    return {"client": "app", "recipe": RECIPE | changes}


def test_read_gives_client_and_recipe():
    client, recipe = read(body())
    assert (client, recipe.name, list(recipe.agents)) == ("app", "work", ["a", "b"])


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (None, "no registration"),
        ([], "no registration"),
        ({"recipe": RECIPE}, "no registration"),
        (body() | {"more": 1}, "no registration"),
        (body() | {"client": 7}, "client"),
        (body(kvflow=2), "kvflow"),
        (body(name="no name"), "name"),
        (body(agents={}), "agents"),
        (body(agents={f"a{number}": {"fixed_tokens": 1} for number in range(257)}), "agents"),
        (body(agents={"a": {"prompt": "x", "after": "nobody"}}), "nobody"),
        (body(agents={"a": {"prompt": "x", "ater": "b"}}), "ater"),
    ],
)
def test_read_refuses_what_is_no_registration_and_says_where(wrong, words):
    with pytest.raises(ControlError) as error:
        read(wrong)
    assert error.value.status == 400
    told = error.value.body()["error"]
    assert words in told["what"] + told["why"]
    assert told["hint"]


def test_error_says_nothing_of_a_prompt():
    secret = "the safe's number is 1234"
    with pytest.raises(ControlError) as error:
        read(body(agents={"a": {"prompt": [secret]}, "b": {"prompt": secret, "fixed_tokens": 3}}))
    assert secret not in json.dumps(error.value.body())


def known() -> Workflows:
    found = Workflows()
    found.add(*read(body()), {"a": 10, "b": 20})
    return found


def test_listed_shows_names_agents_and_edges_and_no_prompt():
    served = read(body(name="served"))[1]
    of_all, of_client = known().listed(served)
    assert (of_all["client"], of_all["name"]) == (None, "served")
    assert of_client == {
        "client": "app",
        "name": "work",
        "repeat": True,
        "agents": ["a", "b"],
        "edges": [
            {"from": "start", "to": "a", "p": None},
            {"from": "a", "to": "b", "p": 0.5},
        ],
        "prefix_tokens": {"a": 10, "b": 20},
    }


def test_remove_takes_a_workflow_from_the_list_once():
    found = known()
    found.remove("app", "work")
    assert found.listed(None) == []
    with pytest.raises(ControlError) as error:
        found.remove("app", "work")
    assert error.value.status == 404


def test_check_room_refuses_one_workflow_too_many_but_not_a_replacement(monkeypatch):
    monkeypatch.setattr(workflows, "MOST_WORKFLOWS", 1)
    found = known()
    found.check_room("app", "work", {})
    with pytest.raises(ControlError) as error:
        found.check_room("app", "other", {})
    assert error.value.status == 413


def test_check_room_refuses_too_many_tokens_in_all(monkeypatch):
    monkeypatch.setattr(workflows, "MOST_TOKENS", 100)
    found = known()
    found.check_room("app", "other", {"a": 70})
    found.check_room("app", "work", {"a": 100})
    with pytest.raises(ControlError) as error:
        found.check_room("app", "other", {"a": 71})
    assert error.value.status == 413
