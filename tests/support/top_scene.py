"""A server's life in frames, made by hand: small, plausible, and the same each time."""

from math import sin

from support.frames import make_node

from kvflow.frames import (
    AgentState,
    Ages,
    Counters,
    EvictionRecord,
    Frame,
    Node,
    Pool,
    PrefetchRecord,
    PrefetchStatus,
    RunState,
    State,
    Traffic,
    WaitingCall,
    Why,
)

BYTES_PER_TOKEN = 131_072
BEGIN_S = 1_700_000_000.0
AGENTS = {"planner": 1152, "executor": 960, "expresser": 1312, "reviewer": 896}
ORDER = tuple(AGENTS)
ROOT = 1


def node(id: int, parent: int = ROOT, **other) -> Node:  # noqa: A002
    """A node, by default of nothing special."""
    return make_node(id, parent, **{"tokens": 64, **other})


def steps_at(place: int, moment: int) -> int:
    """Steps of the agent at a place of the cycle, when the agent `moment` places on runs."""
    return (place - moment) % len(ORDER)


def nodes_at(moment: int) -> list[Node]:
    """A system prompt that all share, the agents' prefixes, and tails of calls."""
    found = [node(2, tokens=128, state=State.MIRRORED, steps=0, why=Why.STEPS, hits=40 + moment)]
    for place, (agent, tokens) in enumerate(AGENTS.items()):
        steps = steps_at(place, moment)
        states = (State.DEVICE, State.MIRRORED, State.HOST, State.HOST)
        state = State.LOADING if steps == 1 and moment % 3 == 0 else states[steps]
        found.append(
            node(
                10 + place,
                2,
                tokens=tokens,
                depth=128,
                state=state,
                steps=steps,
                why=Why.STEPS,
                agents=(f"peer/{agent}",),
                locks=2 if steps == 0 else 0,
                hits=12 - place + moment,
                last_access=100.0 + moment - 3 * steps,
                children=2,
            )
        )
        for call in range(2):
            number = 100 + 10 * place + (moment + call) % 10
            found.append(
                node(
                    number,
                    10 + place,
                    tokens=96 + 32 * call + 8 * place,
                    depth=128 + tokens,
                    state=State.OFFLOADING if call and steps == 2 else State.DEVICE,
                    steps=64 if steps else 0,
                    why=Why.SPENT if steps else Why.UNTAGGED,
                    locks=1 if steps == 0 and call == 0 else 0,
                    last_access=100.0 + moment - 4 * steps - call,
                )
            )
    return found


def agents_at(moment: int) -> tuple[AgentState, ...]:
    """The four agents, and one of another application that nobody waits for."""
    found = []
    for place, (agent, tokens) in enumerate(AGENTS.items()):
        steps = steps_at(place, moment)
        device = {0: tokens + 128, 1: tokens // 2 + 128, 2: 128, 3: 128}[steps]
        found.append(
            AgentState(
                client="peer",
                agent=agent,
                steps=steps,
                runs=4 - steps,
                in_flight=2 if steps == 0 else 0,
                prefix_tokens=tokens + 128,
                device_tokens=device,
                host_tokens=0 if steps == 3 else tokens + 128 - device,
                end=10 + place,
                calls=20 + moment // 4,
                hit_device_tokens=18_000 + 100 * moment,
                hit_host_tokens=3_000,
                computed_tokens=4_000 + 40 * moment,
            )
        )
    idle = AgentState(
        client="nightly-report",
        agent="summariser",
        steps=None,
        runs=0,
        in_flight=0,
        prefix_tokens=0,
        device_tokens=0,
        host_tokens=0,
    )
    return (*found, idle)


def counters_at(moment: int) -> Counters:
    """What has happened by then."""
    device = sum(900 + int(500 * sin(one / 5)) for one in range(moment))
    return Counters(
        tagged_calls=80 + 2 * moment,
        untagged_calls=moment // 2,
        unexpected_calls=0,
        unknown_agents=0,
        other_prompt=0,
        bad_hints={},
        evicted_device_tokens=700 * moment,
        evicted_host_tokens=0,
        not_backed_up_tokens=150 * moment,
        expired_runs=0,
        prefetches=6 + moment,
        prefetched_tokens=1_000 * (6 + moment),
        prefetched_used_tokens=900 * (5 + moment),
        prefetched_late_tokens=60 * moment,
        prefetched_wasted_tokens=20 * moment,
        deferred_calls=moment // 3,
        deferred_passes=moment,
        hit_device_tokens=device,
        hit_host_tokens=300 * moment,
        computed_tokens=260 * moment + 40 * (moment % 7),
    )


def evictions_at(moment: int) -> tuple[EvictionRecord, ...]:
    """The latest, oldest first."""
    whys = (Why.SPENT, Why.SPENT, Why.STEPS, Why.UNTAGGED)
    return tuple(
        EvictionRecord(
            seq=seq,
            tier="host" if seq % 5 == 4 else "device",
            node=200 + seq,
            tokens=96 + 40 * (seq % 6),
            why=whys[seq % 4],
            steps=(64, 64, 3, 4)[seq % 4],
            outcome="demoted" if seq % 4 == 2 and seq % 5 != 4 else "dropped",
            age_s=1.5 + 2.25 * (seq % 8),
            regret=seq % 9 == 5,
        )
        for seq in range(moment, moment + 24)
    )


def prefetches_at(moment: int) -> tuple[PrefetchRecord, ...]:
    """The latest, oldest first."""
    ends = (PrefetchStatus.USED, PrefetchStatus.USED, PrefetchStatus.LATE, PrefetchStatus.WASTED)
    found = []
    for seq in range(moment, moment + 9):
        place = seq % len(ORDER)
        late = {moment + 8: PrefetchStatus.LOADING, moment + 7: PrefetchStatus.ARRIVED}
        found.append(
            PrefetchRecord(
                seq=seq,
                node=10 + place,
                agent=f"peer/{ORDER[place]}",
                steps=1,
                tokens=AGENTS[ORDER[place]],
                status=late.get(seq, ends[(seq // 2) % 4]),
            )
        )
    return tuple(found)


def frame_at(moment: int, **other) -> Frame:
    """The server after so many seconds; `other` replaces what is to differ."""
    running = ORDER[moment % len(ORDER)]
    following = ORDER[(moment + 1) % len(ORDER)]
    given = {
        "mode": "prefetch",
        "page_size": 16,
        "bytes_per_token": BYTES_PER_TOKEN,
        "untagged_steps": 4,
        "runs_on": "cuda",
        "device": Pool(
            capacity=8192,
            free=1400 + int(900 * sin(moment / 9)),
            evictable=8192 - 1400 - int(900 * sin(moment / 9)) - 1800,
            locked=1800,
        ),
        "host": Pool(capacity=16_384, free=9_000 - 20 * moment, evictable=7_000, locked=384),
        "running": 2,
        "waiting": 3,
        "runs": 4,
        "nodes": tuple(nodes_at(moment)),
        "nodes_left_out": False,
        "agents": agents_at(moment),
        "evictions": evictions_at(moment),
        "counters": counters_at(moment),
        "seq": moment + 1,
        "boot": "one",
        "time_s": BEGIN_S + moment,
        "tree_nodes": len(nodes_at(moment)),
        "waiting_calls": tuple(
            WaitingCall(
                agent=f"peer/{following}" if place else "",
                run=f"r{40 + place}",
                prompt_tokens=1500 - 300 * place,
                device_tokens=400 * place,
                host_tokens=600 if place == 1 else 0,
                deferred_passes=2 if place == 1 else 0,
            )
            for place in range(3)
        ),
        "prefetches": prefetches_at(moment),
        "run_states": tuple(
            RunState(
                client="peer",
                workflow="peer",
                run=f"r{40 + run}",
                in_flight={running: 1} if run < 2 else {},
                steps={
                    agent: steps_at(place, moment + run % 2) for place, agent in enumerate(ORDER)
                },
                idle_ticks=0 if run < 2 else 3,
                expected=run == 3,
            )
            for run in range(4)
        ),
        "traffic": Traffic(
            h2d_bytes=sum(int(9e8 + 7e8 * sin(one / 4)) for one in range(moment)),
            d2h_bytes=sum(int(3e8 + 2e8 * sin(one / 7)) for one in range(moment)),
            h2d_operations=moment,
            d2h_operations=moment,
            demand_bytes=int(1e8) * moment,
            waits=moment // 4,
            h2d_pending_bytes=125_829_120,
            d2h_pending_bytes=0,
        ),
        "ages": Ages(
            bounds_s=(1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0),
            hit_tokens=tuple(moment * n for n in (90, 70, 50, 20, 8, 3, 1, 0, 0)),
            evicted_tokens=tuple(moment * n for n in (0, 1, 4, 10, 30, 45, 60, 20, 5)),
        ),
    }
    return Frame(**{**given, **other})


def life(moments: int) -> list[Frame]:
    """So many seconds of the server."""
    return [frame_at(moment) for moment in range(moments)]


def large_frame(count: int) -> Frame:
    """A tree of so many nodes: bushes below a few prefixes, and one long chain."""
    states = tuple(State)
    nodes = [
        node(
            10 + number,
            ROOT if number % 50 == 0 else 10 + number - number % 50 if number % 3 else 9 + number,
            tokens=16 * (1 + number % 40),
            state=states[number % 7 % 5],
            steps=number % 6,
            why=(Why.STEPS, Why.SPENT, Why.UNTAGGED)[number % 3],
            agents=(f"peer/{ORDER[number % 4]}",) if number % 50 == 0 else (),
            hits=number % 90,
        )
        for number in range(count)
    ]
    return frame_at(30, nodes=tuple(nodes), tree_nodes=count)
