import json
from typing import Any

import msgspec
import pytest
from support.frames import busy_frame, make_frame, make_node

from kvflow import __version__
from kvflow.frames import Frame, State, Why
from kvflow.telemetry.model import Host, Sample
from kvflow.tui.document import document
from kvflow.tui.filter import parse
from kvflow.tui.rows import Column, Sort, View, flatten
from kvflow.tui.source import Link, Status
from kvflow.tui.store import Store

NODES = (
    make_node(1, why=Why.STEPS, steps=1, agents=("peer/expresser",)),
    make_node(2, 1, why=Why.SPENT, tokens=30),
    make_node(3, state=State.HOST),
)


def told(
    *frames: Frame,
    view: View | None = None,
    machine: Sample | None = None,
    most: int | None = None,
) -> Any:
    store = Store()
    for frame in frames:
        store.apply(frame)
    status = Status(Link.STALE, "STALE 4 s", "slow", "wait")
    rows = flatten(store, view or View())
    return json.loads(msgspec.json.encode(document(store, rows, status, "x", machine, most)))


def test_document_says_its_version_and_its_source() -> None:
    whole = told(busy_frame(*NODES))
    assert (whole["schema_version"], whole["kvflow"]) == (1, __version__)
    assert whole["source"] == {
        "name": "x",
        "link": "stale",
        "label": "STALE 4 s",
        "why": "slow",
        "hint": "wait",
    }


def test_document_has_the_frame_without_its_part_of_the_tree() -> None:
    frame = busy_frame(*NODES)
    shown = told(frame)["frame"]
    sent = json.loads(msgspec.json.encode(frame))
    for key in ("nodes", "gone", "delta_since", "nodes_left_out"):
        del sent[key]
        assert key not in shown
    for eviction in shown["evictions"]:
        assert eviction.pop("explained")
    assert shown == sent


def test_document_explains_evictions() -> None:
    evictions = told(busy_frame())["frame"]["evictions"]
    assert [one["explained"] for one in evictions] == [
        "dropped from the device: spent",
        "demoted from the device: needed in 9 steps",
    ]


def test_document_lists_every_node_with_its_explanation() -> None:
    nodes = told(busy_frame(*NODES))["nodes"]
    assert [(node["id"], node["level"]) for node in nodes] == [(1, 0), (2, 1), (3, 0)]
    assert [node["explained"]["verdict"] for node in nodes] == [
        "kept: peer/expresser needs it in 1 step",
        "kept, and the first to go: spent",
        "on the host, and the first to go: untagged, ranks as 4 steps",
    ]
    assert nodes[0]["explained"]["numbers"]["tokens_before"] == 30


def test_document_lists_a_node_that_has_just_left_without_explanation() -> None:
    nodes = told(busy_frame(*NODES), busy_frame(at=1, delta_since=1, gone=(3,)))["nodes"]
    assert {node["id"]: node["explained"] is None for node in nodes} == {
        1: False,
        2: False,
        3: True,
    }


@pytest.mark.parametrize(("most", "listed"), [(None, [2, 1]), (1, [2]), (0, [])])
def test_document_lists_what_is_asked_for(most: int | None, listed: list[int]) -> None:
    view = View(parse("state:device"), Sort(Column.ID, descending=True), flat=True)
    whole = told(busy_frame(*NODES), view=view, most=most)
    assert [node["id"] for node in whole["nodes"]] == listed
    assert whole["tree"] == {"known": 3, "complete": True, "matching": 2}


def test_document_has_hits_since_the_start_and_rates_of_the_last_interval() -> None:
    whole = told(busy_frame(), busy_frame(at=1))
    assert whole["hits"] == {"device": 0.6, "host": 0.2, "computed": 0.2}
    assert whole["rates"]["h2d_gbps"] == 1.0
    assert told(make_frame())["hits"] is None


def test_document_has_the_machine_if_it_is_looked_at() -> None:
    host = Host(memory_total_bytes=9, memory_available_bytes=4, cpus=2, cpu=None)
    machine = told(busy_frame(), machine=Sample(1.0, (), "no driver", host))["machine"]
    assert (machine["why_no_gpu"], machine["host"]["memory_total_bytes"]) == ("no driver", 9)
    assert told(busy_frame())["machine"] is None
