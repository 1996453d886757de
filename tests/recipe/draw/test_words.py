import pytest

from kvflow.graph import START, Agent, All, Edge, Either, Graph, Trigger
from kvflow.recipe.draw.words import label, listing, notes, waits_for


@pytest.mark.parametrize(
    ("trigger", "words"),
    [
        (Edge(START), "start"),
        (Edge("a", 0.25), "a (0.25)"),
        (All((Edge("a"),)), "a"),
        (All((Edge("a"), Edge("b"))), "all of a, b"),
        (Either((All((Edge("a"), Edge("b"))), Edge("c"))), "any of (all of a, b), c"),
        (All((Either((Edge("a"),)), Edge("b"))), "all of a, b"),
    ],
)
def test_waits_for_says_the_trigger(trigger: Trigger, words: str) -> None:
    assert waits_for(trigger) == words


@pytest.mark.parametrize(
    ("fan_out", "text"), [((1, 1), "a"), ((1, 4), "a x1..4"), ((3, 3), "a x3")]
)
def test_label_shows_fan_out(fan_out: tuple[int, int], text: str) -> None:
    assert label(Agent("a", fan_out=fan_out)) == text


def test_listing_has_a_line_for_each_agent() -> None:
    graph = Graph([Agent("long-name"), Agent("b", Edge("long-name"))])
    assert listing(graph, None) == ["long-name  after start", "b          after long-name"]


def test_notes_tell_the_way_back_the_ends_and_nested_triggers() -> None:
    nested = All((Edge("a"), Either((Edge("b"), Edge("c")))))
    graph = Graph(
        [
            Agent("a", Either((Edge(START), Edge("b", 0.3)))),
            Agent("b", Edge("a")),
            Agent("c", Edge("a")),
            Agent("d", nested),
        ],
        repeat=True,
    )
    assert notes(graph) == [
        ("back", "b → a (0.3)"),
        ("ends", "after b (0.7), d, then the next run starts"),
        ("waits", "d for all of a, (any of b, c)"),
    ]


def test_notes_tell_shares_that_the_picture_cannot() -> None:
    mixed = Either((Edge("a", 0.4), Edge("b", 0.2)))
    graph = Graph([Agent("a"), Agent("b"), Agent("c", mixed)])
    assert ("waits", "c for any of a (0.4), b (0.2)") in notes(graph)


def test_notes_run_without_an_end_is_called_so() -> None:
    graph = Graph([Agent("a", Either((Edge(START), Edge("a"))))], repeat=True)
    assert ("ends", "never: agents follow each other") in notes(graph)
