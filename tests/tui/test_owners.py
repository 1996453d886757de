import pytest
from support.frames import make_agent, make_node

from kvflow.tui import owners

SPEAKER = make_agent("app/planner", 0, end=7)
IDLE = make_agent("nightly/summary", None, end=9)
WARMED = make_agent("kvflow-warm/planner", None, end=7)
UNASKED = make_agent("kvflow-warm/writer", None, end=8)
WARMING = make_agent("kvflow-warm/planner", 0)


def test_applications_who_speaks_first_comes_first_and_who_only_warmed_is_none() -> None:
    assert owners.applications([IDLE, WARMED, UNASKED, SPEAKER]) == [SPEAKER, IDLE]


def test_applications_have_whoever_is_warming_just_now() -> None:
    assert owners.applications([WARMING]) == [WARMING]


@pytest.mark.parametrize(
    ("agents", "client"),
    [([SPEAKER, WARMED], "app"), ([SPEAKER, IDLE], None), ([WARMED], None), ([], None)],
)
def test_only_client_is_the_only_application(agents: list, client: str | None) -> None:
    assert owners.only_client(agents) == client


def test_warmed_is_what_ends_no_applications_prefix() -> None:
    assert owners.warmed([SPEAKER, IDLE, WARMED, UNASKED]) == [UNASKED]


def test_warmed_words_name_the_agents_or_say_nothing() -> None:
    assert owners.warmed_words([WARMED, UNASKED]) == (
        "warmed, and asked for by nobody yet: planner, writer"
    )
    assert owners.warmed_words([SPEAKER, WARMED]) == ""


@pytest.mark.parametrize(
    ("agents", "client", "names"),
    [
        (("app/a", "kvflow-warm/a"), None, ["app/a"]),
        (("app/a", "kvflow-warm/a"), "app", ["a"]),
        (("app/a", "other/a"), "app", ["a", "other/a"]),
        (("kvflow-warm/a",), "app", ["a (warmed)"]),
        ((), None, []),
    ],
)
def test_names_of_a_node_are_its_applications_agents(
    agents: tuple[str, ...], client: str | None, names: list[str]
) -> None:
    assert owners.names(make_node(1, agents=agents), client) == names
