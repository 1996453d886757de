from kvflow.graph import START, Agent, All, Edge, Either, Graph
from kvflow.recipe.draw import mermaid


def test_mermaid_draws_peer() -> None:
    graph = Graph(
        [
            Agent("planner"),
            Agent("executor", Edge("planner"), (1, 4)),
            Agent("expresser", Either((Edge("executor"), Edge("reviewer", 0.3)))),
            Agent("reviewer", Edge("expresser")),
        ],
        repeat=True,
    )
    assert mermaid(graph).splitlines() == [
        "flowchart TD",
        '  start(("start"))',
        '  agent0["planner"]',
        '  agent1["executor x1..4"]',
        '  agent2["expresser"]',
        '  agent3["reviewer"]',
        "  start --> agent0",
        "  agent0 --> agent1",
        "  agent1 --> agent2",
        "  agent3 -->|0.3| agent2",
        "  agent2 --> agent3",
        '  finish(("end"))',
        "  agent3 -.-> finish",
        "  finish -.-> start",
    ]


def test_mermaid_barrier_is_a_gate_and_a_nested_branch_another() -> None:
    nested = All((Edge(START), Either((Edge("a"), Edge("b")))))
    lines = mermaid(Graph([Agent("a"), Agent("b"), Agent("c", nested)])).splitlines()
    assert lines[lines.index('  gate0{"all"}') :][:6] == [
        '  gate0{"all"}',
        "  gate0 --> agent2",
        "  start --> gate0",
        '  gate1{"any"}',
        "  gate1 --> gate0",
        "  agent0 --> gate1",
    ]


def test_mermaid_agent_named_like_a_word_of_its_own_gets_another_id() -> None:
    assert '  agent0["end"]' in mermaid(Graph([Agent("end")])).splitlines()


def test_mermaid_shows_steps() -> None:
    assert 'agent0["a: 2 steps"]' in mermaid(Graph([Agent("a")]), {"a": 2})
