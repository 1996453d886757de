from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from support.calm import calm

from kvflow.frames import (
    SCHEMA_VERSION,
    AgentState,
    Counters,
    EvictionRecord,
    Frame,
    Node,
    Pool,
    State,
    Why,
)

numbers = st.integers(0, 2**53)
names = st.text(max_size=12)
PLAIN = {int: numbers, float: st.floats(0, 2**53), bool: st.booleans(), str: names}


def some(kind: type, **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Any value of a frame's part; `fields` are those that are not plain."""
    plain = {
        field.name: PLAIN[field.type]
        for field in msgspec.structs.fields(kind)
        if field.name not in fields
    }
    return st.builds(kind, **plain, **fields)


def several(part: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(part, max_size=3).map(tuple)


states, reasons = st.sampled_from(State), st.sampled_from(Why)
frames = some(
    Frame,
    device=some(Pool),
    host=st.none() | some(Pool),
    nodes=several(some(Node, state=states, why=reasons, agents=several(names))),
    agents=several(some(AgentState, steps=st.none() | numbers)),
    evictions=several(some(EvictionRecord, why=reasons)),
    counters=some(Counters, bad_hints=st.dictionaries(names, numbers, max_size=2)),
)


@calm
@given(frame=frames)
def test_frame_that_goes_over_the_wire_comes_back_equal(frame):
    assert msgspec.json.decode(msgspec.json.encode(frame), type=Frame) == frame


@calm
@given(frame=frames)
def test_frame_with_fields_of_a_later_version_is_read(frame):
    later = msgspec.to_builtins(frame) | {"schema_version": 2, "colour": "red"}
    assert msgspec.convert(later, Frame).nodes == frame.nodes


def test_frame_says_its_schema_version():
    [version] = [f for f in msgspec.structs.fields(Frame) if f.name == "schema_version"]
    assert version.default == SCHEMA_VERSION == 1


def test_words_of_the_frame_are_those_of_the_documents():
    assert set(State) == {"device", "mirrored", "host", "loading", "offloading"}
    assert set(Why) == {"spent", "steps", "untagged", "access"}
