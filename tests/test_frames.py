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


def some(kind: type, **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Any value of a frame's part; whole numbers where nothing else is said."""
    hints = {field.name: numbers for field in msgspec.structs.fields(kind)}
    return st.builds(kind, **(hints | fields))


nodes = some(
    Node,
    state=st.sampled_from(State),
    why=st.sampled_from(Why),
    agents=st.lists(names, max_size=2).map(tuple),
    last_access=st.floats(0, 2**53),
)
agents = some(AgentState, client=names, agent=names, steps=st.none() | numbers)
evictions = some(EvictionRecord, tier=names, why=st.sampled_from(Why), outcome=names)
frames = some(
    Frame,
    schema_version=st.just(SCHEMA_VERSION),
    mode=names,
    device=some(Pool),
    host=st.none() | some(Pool),
    nodes=st.lists(nodes, max_size=3).map(tuple),
    nodes_left_out=st.booleans(),
    agents=st.lists(agents, max_size=3).map(tuple),
    evictions=st.lists(evictions, max_size=3).map(tuple),
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


def test_words_of_the_frame_are_those_of_the_documents():
    assert set(State) == {"device", "mirrored", "host", "loading", "offloading"}
    assert set(Why) == {"spent", "steps", "untagged", "access"}
