import pytest
from support.frames import ROOT, make_agent, make_eviction, make_frame, make_node

from kvflow.frames import Frame, Node, Pool, State, Why
from kvflow.tui.explain import Explanation, why_evicted, why_kept
from kvflow.tui.forecast import Forecast, Tier
from kvflow.tui.store import Store

AGENTS = (make_agent("app/planner", 1), make_agent("app/writer", 3), make_agent("app/idle", None))


def store_of(*nodes: Node, **known: object) -> Store:
    store = Store()
    store.apply(make_frame(*nodes, **({"agents": AGENTS} | known)))
    return store


def explained(store: Store, node_id: int = 1) -> Explanation:
    explanation = why_kept(store, node_id)
    assert explanation is not None
    return explanation


def prefix(node_id: int = 1, parent: int = ROOT, **known: object) -> Node:
    ordinary = {"why": Why.STEPS, "steps": 1, "agents": ("app/planner",)}
    return make_node(node_id, parent, **(ordinary | known))


SPENT = make_node(9, why=Why.SPENT, tokens=30)


def test_kept_prefix_is_explained_by_who_needs_it_when() -> None:
    kept = explained(store_of(prefix(), SPENT))
    assert kept.verdict == "kept: app/planner needs it in 1 step"
    assert kept.reasons == (
        "The fixed prefix of app/planner (in 1 step) passes through it: it ranks as 1 step.",
        "Before it 1 node with 30 tokens goes, and 400 tokens are free: "
        "it stays until room is needed for more than 430 tokens.",
        "No host copy is there: if it left the device, 100 tokens (100 KiB) "
        "would be computed again.",
    )
    assert kept.numbers == {
        "steps": 1,
        "why": "steps",
        "locks": 0,
        "agents": 1,
        "nodes_before": 1,
        "tokens_before": 30,
        "free_tokens": 400,
        "tree_is_complete": True,
    }


def test_prefix_whose_agent_seldom_speaks_when_foretold_is_said_not_to_be_prefetched_for() -> None:
    vague = (make_agent("app/planner", 1, doubted=True),)
    kept = explained(store_of(prefix(), SPENT, agents=vague))
    assert kept.verdict == (
        "kept: app/planner needs it in 1 step, which seldom comes true: "
        "nothing is prefetched for it"
    )


def test_shared_prefix_is_explained_by_all_who_need_it_the_nearest_first() -> None:
    shared = prefix(agents=())
    branches = [
        make_node(2, 1, why=Why.STEPS, steps=3, agents=("app/writer", "app/idle")),
        make_node(3, 1, why=Why.STEPS, steps=1, agents=("app/planner",)),
    ]
    kept = explained(store_of(shared, *branches, SPENT))
    assert kept.verdict == "kept: app/planner needs it in 1 step"
    assert kept.reasons[0].startswith(
        "The fixed prefix of app/planner (in 1 step), app/writer (in 3 steps), app/idle "
        "(in no live run) passes"
    )


def test_prefix_that_no_path_leads_to_is_not_promised() -> None:
    agents = (make_agent("app/planner", 64),)
    kept = explained(store_of(prefix(steps=64), SPENT, agents=agents))
    assert kept.verdict == "kept: app/planner needs it in 64 steps or more, if ever"


def test_prefix_of_agents_without_a_live_run_is_told_to_be_needed_by_nobody() -> None:
    idle = prefix(steps=4, agents=("app/idle",))
    kept = explained(store_of(idle, SPENT))
    assert kept.verdict == "kept: nobody with a live run needs it"
    assert kept.reasons[0] == (
        "The fixed prefix of app/idle (in no live run) passes through it: it ranks as 4 steps "
        "(untagged_steps), for nobody with a live run needs it."
    )


def test_first_to_go_among_prefixes_without_a_live_run_is_told_so() -> None:
    kept = explained(store_of(prefix(steps=4, agents=("app/idle",))))
    assert kept.verdict == "kept, and the first to go: nobody with a live run needs it"


def test_conversation_is_explained_by_itself_and_not_by_a_fixed_prefix() -> None:
    kept = explained(store_of(prefix(steps=2, agents=()), SPENT))
    assert kept.verdict == "kept: a conversation goes on in 2 steps"
    assert kept.reasons[0] == ("A live run's conversation passes through it: it ranks as 2 steps.")


def test_conversation_below_a_prefix_that_nobody_waits_for_is_what_it_is_kept_for() -> None:
    idle = prefix(steps=0, agents=("app/idle",))
    kept = explained(store_of(idle, prefix(2, 1, steps=0, agents=()), SPENT))
    assert kept.verdict == "kept: a conversation goes on now"
    assert "A live run's conversation passes through it" in kept.reasons[0]


def test_node_whose_names_may_not_have_been_shown_yet_is_told_of_with_care() -> None:
    kept = explained(store_of(prefix(agents=()), SPENT, nodes_left_out=True))
    assert kept.verdict == "kept: needed in 1 step"
    assert kept.reasons[0] == (
        "A fixed prefix or a conversation passes through it: it ranks as 1 step."
    )


def test_eviction_at_the_rank_of_those_without_a_live_run_says_that_it_may_be_one() -> None:
    record = make_eviction(7, why=Why.STEPS, steps=4)
    assert why_evicted(store_of(), record).reasons[0] == (
        "Whoever needs it next was 4 steps away, or nobody with a live run needed it, which "
        "ranks the same, and whatever was needed later had gone before it or was in use."
    )


def test_prefix_that_was_warmed_too_is_explained_by_applications_alone() -> None:
    names = ("app/planner", "kvflow-warm/planner")
    agents = (make_agent("app/planner", 1), make_agent("kvflow-warm/planner", None))
    kept = explained(store_of(prefix(agents=names), SPENT, agents=agents))
    assert kept.reasons[0].startswith("The fixed prefix of app/planner (in 1 step) passes")


def test_prefix_of_many_agents_names_a_few_and_counts_the_rest() -> None:
    names = tuple(f"app/a{one}" for one in range(7))
    agents = tuple(make_agent(name, place) for place, name in enumerate(names))
    kept = explained(store_of(prefix(agents=names, steps=0), SPENT, agents=agents))
    assert kept.verdict == "kept: app/a0 needs it now"
    assert "app/a3 (in 3 steps) and 3 more passes through it" in kept.reasons[0]


def test_first_to_go_is_told_so() -> None:
    spent = explained(store_of(SPENT, prefix()), 9)
    assert spent.verdict == "kept, and the first to go: spent"
    assert spent.reasons[0].startswith("A finished call left it behind")
    assert "Before it nothing goes, and 400 tokens are free" in spent.reasons[1]


@pytest.mark.parametrize(
    ("node", "verdict", "reason"),
    [
        (
            prefix(locks=2),
            "in use: 2 locks on it, so nothing can evict it now",
            "It has no turn to be evicted while it, or something below it, is in use.",
        ),
        (
            prefix(state=State.LOADING, locks=1),
            "arriving: it is being copied from the host to the device",
            "On its way: 100 tokens (100 KiB).",
        ),
        (
            prefix(state=State.MIRRORED),
            "kept: app/planner needs it in 1 step",
            "A host copy is there: if it left the device, 100 tokens (100 KiB) could be loaded.",
        ),
        (
            make_node(1),
            "kept: untagged, ranks as 4 steps",
            "No agent's fixed prefix passes through it: it ranks as 4 steps (untagged_steps).",
        ),
        (
            make_node(1, why=Why.ACCESS, last_access=99.0),
            "kept: by its last access alone",
            "Mode off: the least recently used goes first, whoever may need it.",
        ),
    ],
)
def test_node_is_explained_by_its_state_and_rank(node: Node, verdict: str, reason: str) -> None:
    kept = explained(store_of(node, SPENT))
    assert kept.verdict == verdict
    assert reason in kept.reasons


def test_node_on_the_host_is_explained_by_the_room_there() -> None:
    store = store_of(
        prefix(state=State.HOST),
        make_node(2, state=State.HOST, why=Why.SPENT, tokens=50),
        host=Pool(capacity=500, free=70, evictable=430, locked=0),
    )
    kept = explained(store)
    assert kept.verdict == "on the host: app/planner needs it in 1 step"
    assert "it stays until room is needed for more than 120 tokens." in kept.reasons[1]
    assert kept.reasons[2] == (
        "It is on the host alone: 100 tokens (100 KiB) to load when a call needs it."
    )


def test_node_above_one_in_use_is_told_so() -> None:
    store = store_of(make_node(1), prefix(2, parent=1, locks=1))
    assert explained(store).verdict == "kept: something below it is in use"


def test_explanation_of_a_part_of_the_tree_says_that_it_is_one() -> None:
    kept = explained(store_of(prefix(), SPENT, nodes_left_out=True))
    assert "goes (of what has been shown so far), and" in kept.reasons[1]
    assert kept.numbers["tree_is_complete"] is False


def test_explanation_with_a_forecast_at_hand_is_the_same() -> None:
    store = store_of(prefix(), SPENT)
    assert why_kept(store, 1, Forecast(store.tree, Tier.DEVICE)) == why_kept(store, 1)


def test_node_that_is_not_there_has_no_explanation() -> None:
    assert why_kept(store_of(prefix()), 99) is None
    assert why_kept(Store(), 1) is None


@pytest.mark.parametrize(
    ("known", "verdict", "reasons"),
    [
        (
            {"why": Why.SPENT, "age_s": 2.5},
            "dropped from the device: spent",
            (
                "A finished call had left it behind, and no other call had matched it since.",
                "Nothing is left of it: it would have to be computed again.",
                "It had not been used for 2.5 s.",
            ),
        ),
        (
            {"why": Why.STEPS, "steps": 9, "outcome": "demoted", "regret": True},
            "demoted from the device: needed in 9 steps",
            (
                "Whoever needs it next was 9 steps away, and whatever was needed later had gone "
                "before it or was in use.",
                "A host copy is left: it can be loaded.",
                "A call has asked for it since: it would have been better to keep it.",
            ),
        ),
        (
            {"why": Why.UNTAGGED, "tier": "host"},
            "dropped from the host: untagged, ranks as 4 steps",
            (
                "No agent that is expected needed it: it ranked as 4 steps.",
                "Nothing is left of it: it would have to be computed again.",
            ),
        ),
        (
            {"why": Why.ACCESS},
            "dropped from the device: by its last access alone",
            (
                "Mode off: it was the least recently used.",
                "Nothing is left of it: it would have to be computed again.",
            ),
        ),
    ],
)
def test_eviction_is_explained_by_what_it_ranked_as_and_what_is_left(
    known: dict[str, object], verdict: str, reasons: tuple[str, ...]
) -> None:
    explanation = why_evicted(store_of(), make_eviction(7, **known))
    assert explanation.verdict == verdict
    assert explanation.reasons == reasons
    assert explanation.numbers["seq"] == 7


def test_eviction_can_be_explained_before_the_first_frame() -> None:
    assert why_evicted(Store(), make_eviction(1, why=Why.UNTAGGED)).verdict.startswith("dropped")


def test_agents_of_other_servers_frames_do_not_matter() -> None:
    frame: Frame = make_frame(prefix(agents=("app/stranger",)), SPENT)
    store = Store()
    store.apply(frame)
    kept = explained(store)
    assert kept.verdict == "kept: needed in 1 step"
    assert kept.reasons[0] == "A fixed prefix passes through it: it ranks as 1 step."
