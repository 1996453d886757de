from collections.abc import Iterable

from kvflow.engine.marks import Owner, Prefix
from kvflow.engine.near import Near


def prefix(agent: int, tenant: int = 0) -> Prefix:
    return Prefix("app", f"a{agent}", None, str(tenant))


def near(tenants: int = 1, *, worthless: Iterable[Owner] = ()) -> Near:
    """Agents with a prefix for each of so many tenants."""
    return Near(
        lambda owner, _: owner not in worthless,
        lambda owner: [Prefix(*owner, None, str(tenant)) for tenant in range(tenants)],
    )


def put(agents: Near, *steps: int) -> None:
    for number, one in enumerate(steps):
        agents.put(("app", f"a{number}"), one)


def looks(agents: Near, passes: int) -> list[list[Prefix]]:
    return [agents.look()[0] for _ in range(passes)]


def test_every_pass_looks_at_all_of_a_few_agents_nearest_first():
    agents = near()
    put(agents, 2, 1, 3)
    agents.look()
    assert looks(agents, 2) == [[prefix(1), prefix(0), prefix(2)]] * 2


def test_pass_looks_at_some_of_many_and_a_round_at_all():
    agents = near(tenants=3)
    put(agents, *[1] * 40)
    agents.look()
    first, *others = looks(agents, 4)
    assert all(len(one) <= 32 for one in (first, *others))
    assert {one for look in (first, *others) for one in look} == {
        prefix(agent, tenant) for agent in range(40) for tenant in range(3)
    }


def test_agent_that_comes_near_is_looked_at_in_the_next_pass_whoever_is_before_it():
    agents = near()
    put(agents, *[1] * 100)
    agents.look()
    agents.put(("app", "late"), 9)
    assert agents.look()[0][0].agent == "late"
    assert "late" not in {one.agent for one in agents.look()[0]}


def test_round_that_led_to_something_begins_anew_with_the_nearest():
    agents = near()
    put(agents, *range(1, 101))
    agents.look()
    assert agents.look()[1] is False
    agents.begin_anew()
    found, begins = agents.look()
    assert begins
    assert found[0] == prefix(0)


def test_agent_that_is_not_near_any_more_is_passed_over():
    agents = near()
    put(agents, 1, 2)
    agents.drop(("app", "a0"))
    agents.drop(("app", "unknown"))
    assert agents.look()[0] == [prefix(1)] * 2
    assert ("app", "a0") not in agents
    assert agents.steps(("app", "a0")) is None
    assert agents.steps(("app", "a1")) == 2


def test_agents_of_which_nothing_is_due_cost_a_look_and_give_nothing():
    agents = near(worthless=[("app", f"a{number}") for number in range(40)])
    put(agents, *[1] * 40, 2)
    agents.look()
    assert looks(agents, 2) == [[prefix(40)], []]


def test_marks_may_change_while_a_round_goes_on():
    standing = {prefix(0, tenant): None for tenant in range(50)}
    agents = Near(lambda *_: True, lambda _: standing)
    put(agents, 1)
    agents.look()
    standing.clear()
    assert agents.look()[0] == [prefix(0, tenant) for tenant in range(32, 50)]


def test_nobody_near_gives_nothing():
    agents = near()
    assert not agents
    assert agents.look() == ([], True)
