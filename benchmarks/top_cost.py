"""What a refresh costs `kvflow top` before anything is drawn, and whether it keeps anything.

    python benchmarks/top_cost.py
    python benchmarks/top_cost.py --nodes 10000 50000 --frames 100000 --json

Needs neither engine nor GPU nor Textual; top_terminal.py has the screen too. A refresh is: read a
frame of 500 changed nodes from JSON, apply it to a tree of so many nodes, and find the rows that a
screen shows. Times are CPU time, so that a busy machine does not count. Memory is the number of
blocks that Python has allocated: after the 15 minutes of history are full, 100,000 frames must not
add to it.
"""

import argparse
import gc
import json
import random
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

import msgspec
from rich.console import Console
from rich.table import Table

from kvflow.frames import Counters, EvictionRecord, Frame, Node, Pool, State, Traffic, Why
from kvflow.tui.filter import parse
from kvflow.tui.history import POINTS
from kvflow.tui.rows import Column, Sort, View, flatten
from kvflow.tui.store import Store

GOAL_MS = 30.0
GOAL_NODES = 10_000
CHANGES, SHOWN, ROUNDS = 500, 60, 30
VIEWS = {
    "tree": View(),
    "tree by steps": View(sort=Sort(Column.STEPS, descending=True)),
    "filtered": View(filter=parse("state:host tokens>100")),
    "list": View(flat=True),
}


EVICTIONS = tuple(
    EvictionRecord(
        seq=seq, tier="device", node=seq, tokens=100, why=Why.SPENT, steps=4, outcome="dropped"
    )
    for seq in range(512)
)


class Row(NamedTuple):
    """One view. Milliseconds of CPU, medians; `whole` is the largest sum of a refresh."""

    nodes: int
    view: str
    read_ms: float
    apply_ms: float
    rows_ms: float
    whole_ms: float


class Server:
    """A tree that changes from frame to frame.

    Args:
        nodes: in the tree.
        seed: of what changes.
    """

    def __init__(self, nodes: int, seed: int) -> None:
        self._chance, self._seq, self._next_id = random.Random(seed), 0, 1
        self.nodes: dict[int, Node] = {}
        for _ in range(nodes):
            self._grow()

    def frames(self) -> Iterator[Frame]:
        """The whole tree, then changes: most of them other states, a tenth gone and new."""
        yield self._frame(tuple(self.nodes.values()), (), None)
        while True:
            parents = {node.parent for node in self.nodes.values()}
            leaves = [one for one in self.nodes if one not in parents]
            gone = self._chance.sample(leaves, min(len(leaves), CHANGES // 10))
            for one in gone:
                del self.nodes[one]
            fresh = [self._grow() for _ in gone]
            changed = self._chance.sample(
                list(self.nodes), min(len(self.nodes), CHANGES - len(fresh))
            )
            for one in changed:
                self.nodes[one] = self._moved(self.nodes[one])
            nodes = tuple(self.nodes[one] for one in {*fresh, *changed})
            yield self._frame(nodes, tuple(gone), self._seq)

    def _grow(self) -> int:
        node_id, chance = self._next_id, self._chance
        self._next_id += 1
        parent = chance.choice(list(self.nodes)) if chance.random() < 0.1 and self.nodes else 0
        if self.nodes and not parent and chance.random() < 0.9:
            parent = chance.randrange(1, min(node_id, 200))
        above = self.nodes.get(parent)
        self.nodes[node_id] = Node(
            id=node_id,
            parent=parent if above else 0,
            tokens=chance.randint(1, 400),
            depth=above.depth + above.tokens if above else 0,
            state=State.DEVICE,
            steps=chance.randrange(64),
            why=Why.STEPS,
            agents=(f"app/agent{chance.randrange(50)}",) if chance.random() < 0.1 else (),
            locks=0,
            hits=0,
            last_access=float(node_id),
            children=0,
        )
        return node_id

    def _moved(self, node: Node) -> Node:
        state = self._chance.choice(list(State))
        return msgspec.structs.replace(node, state=state, hits=node.hits + 1)

    def _frame(self, nodes: tuple[Node, ...], gone: tuple[int, ...], since: int | None) -> Frame:
        self._seq += 1
        return make_frame(self._seq, nodes, gone, since)


def make_frame(
    seq: int, nodes: tuple[Node, ...], gone: tuple[int, ...], since: int | None
) -> Frame:
    """A frame of a busy server, one a second."""
    pool = Pool(capacity=100_000, free=1000, evictable=90_000, locked=9000)
    none = dict.fromkeys((field.name for field in msgspec.structs.fields(Traffic)), 0)
    counts = dict.fromkeys((field.name for field in msgspec.structs.fields(Counters)), seq)
    return Frame(
        mode="prefetch",
        page_size=1,
        bytes_per_token=1024,
        untagged_steps=4,
        device=pool,
        host=pool,
        running=8,
        waiting=3,
        runs=8,
        nodes=nodes,
        nodes_left_out=False,
        agents=(),
        evictions=EVICTIONS,
        counters=Counters(**(counts | {"bad_hints": {}})),
        seq=seq,
        boot="one",
        time_s=1_700_000_000.0 + seq,
        delta_since=since,
        gone=gone,
        tree_nodes=len(nodes),
        traffic=Traffic(**none),
    )


def timed(action: Callable[[], object]) -> float:
    """Milliseconds of CPU."""
    began = time.process_time()
    action()
    return (time.process_time() - began) * 1000


def refreshes(nodes: int, seed: int) -> list[Row]:
    """What a refresh of a tree of so many nodes costs in each view."""
    frames = Server(nodes, seed).frames()
    store = Store()
    store.apply(next(frames))
    rows = []
    for name, view in VIEWS.items():
        spent: list[tuple[float, float, float]] = []
        for _ in range(ROUNDS):
            raw = msgspec.json.encode(next(frames))
            read = timed(lambda raw=raw: msgspec.json.decode(raw, type=Frame))
            frame = msgspec.json.decode(raw, type=Frame)
            applied = timed(lambda frame=frame: store.apply(frame))
            spent.append((read, applied, timed(lambda view=view: flatten(store, view)[:SHOWN])))
        read, applied, found = (statistics.median(part) for part in zip(*spent, strict=True))
        rows.append(Row(nodes, name, read, applied, found, max(map(sum, spent))))
    return rows


def growth(frames: int, seed: int) -> int:
    """Blocks of memory that so many frames add once the history is full."""
    server = Server(200, seed)
    changes = server.frames()
    store = Store()
    store.apply(next(changes))
    known = [next(changes) for _ in range(20)]

    def play(first: int, last: int) -> int:
        for seq in range(first, last):
            change = known[seq % len(known)]
            store.apply(make_frame(seq, change.nodes, change.gone, seq - 1))
        gc.collect()
        return sys.getallocatedblocks()

    full = play(2, POINTS + 100)
    return play(POINTS + 100, POINTS + 100 + frames) - full


def main() -> int:
    """Measure, print, and exit 1 if a goal is missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--nodes", type=int, nargs="+", default=[GOAL_NODES, 50_000])
    parser.add_argument("--frames", type=int, default=0, help="to look for growth over; 0: do not")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args()
    rows = [row for nodes in chosen.nodes for row in refreshes(nodes, chosen.seed)]
    grown = growth(chosen.frames, chosen.seed) if chosen.frames else None
    if chosen.json:
        print(json.dumps({"rows": [row._asdict() for row in rows], "blocks_added": grown}))
    else:
        table = Table(*Row._fields, box=None, title="a refresh, ms of CPU", title_justify="left")
        for row in rows:
            table.add_row(f"{row.nodes:,}", row.view, *(f"{value:.1f}" for value in row[2:]))
        Console().print(table)
        if grown is not None:
            print(f"{chosen.frames:,} frames added {grown:,} blocks of memory")
    median = {row: row.read_ms + row.apply_ms + row.rows_ms for row in rows}
    slow = [row for row in rows if row.nodes <= GOAL_NODES and median[row] > GOAL_MS]
    return int(bool(slow) or (grown or 0) > 1000)


if __name__ == "__main__":
    sys.exit(main())
