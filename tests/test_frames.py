from enum import StrEnum
from typing import Any, get_args, get_origin

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from support.calm import calm

from kvflow.frames import SCHEMA_VERSION, Frame, State, Why

numbers = st.integers(0, 2**53)
PLAIN = {
    int: numbers,
    float: st.floats(0, 2**53),
    bool: st.booleans(),
    str: st.text(max_size=12),
    type(None): st.none(),
}


def some(kind: Any) -> st.SearchStrategy[Any]:
    """Any value of a type that frames are made of."""
    if kind in PLAIN:
        return PLAIN[kind]
    parts = [some(part) for part in get_args(kind) if part is not ...]
    if get_origin(kind) is tuple:
        return st.lists(parts[0], max_size=2).map(tuple)
    if get_origin(kind) is dict:
        return st.dictionaries(*parts, max_size=2)
    if parts:
        return st.one_of(parts)
    if issubclass(kind, StrEnum):
        return st.sampled_from(kind)
    return st.builds(kind, **{f.name: some(f.type) for f in msgspec.structs.fields(kind)})


frames = some(Frame)


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
