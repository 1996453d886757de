import argparse
from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvflow.engine.launch import flags
from kvflow.engine.launch.flags import Flag
from kvflow.errors import UsageError

VALUED = ["--host", "--port", "--dtype", "--model-path"]
SWITCHES = ["--enable-hierarchical-cache", "--trust-remote-code"]
VALUES = st.text("abc019._/", min_size=1, max_size=5)

a_flag = st.one_of(
    st.builds(lambda name, value: [name, value], st.sampled_from(VALUED), VALUES),
    st.builds(lambda name, value: [f"{name}={value}"], st.sampled_from(VALUED), VALUES),
    st.sampled_from(SWITCHES).map(lambda name: [name]),
)
a_source = st.lists(a_flag, max_size=6).map(lambda found: list(chain.from_iterable(found)))


def as_sglang_reads(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    for name in VALUED:
        parser.add_argument(name)
    for name in SWITCHES:
        parser.add_argument(name, action="store_true")
    return parser.parse_args(words)


@given(st.lists(a_source, max_size=4))
def test_merge_any_sources_means_to_argparse_what_their_sequence_means(
    sources: list[list[str]],
) -> None:
    merged = flags.merge(*(flags.parse(source) for source in sources))

    assert as_sglang_reads(flags.words(merged)) == as_sglang_reads([*chain.from_iterable(sources)])


@given(st.lists(a_source, max_size=4), st.sampled_from(VALUED))
def test_value_of_any_sources_is_what_argparse_takes(sources: list[list[str]], key: str) -> None:
    merged = flags.merge(*(flags.parse(source) for source in sources))

    taken = getattr(
        as_sglang_reads([*chain.from_iterable(sources)]), key.strip("-").replace("-", "_")
    )
    assert flags.value_of(merged, key) == (taken or "")


def test_merge_same_flag_in_other_spelling_drops_the_earlier() -> None:
    merged = flags.merge([Flag("--model-path", ("a",))], flags.parse(["--model=b"]))

    assert flags.words(merged) == ["--model", "b"]


def test_merge_repetition_within_a_source_is_kept() -> None:
    typed = flags.parse(["--lora-paths", "a", "b", "--lora-paths", "c"])

    assert flags.words(flags.merge(typed)) == ["--lora-paths", "a", "b", "--lora-paths", "c"]


def test_parse_negative_number_belongs_to_its_flag() -> None:
    assert flags.parse(["--random-seed", "-1"]) == [Flag("--random-seed", ("-1",))]


def test_parse_word_before_any_flag_is_refused() -> None:
    with pytest.raises(UsageError, match=r"'peer\.yaml' is not an SGLang flag"):
        flags.parse(["peer.yaml", "--port", "1"])


def test_from_recipe_true_is_a_switch_and_false_turns_one_off() -> None:
    given_flags, off = flags.from_recipe(
        {"mem-fraction-static": 0.85, "trust-remote-code": True, "enable-hicache": False}
    )

    assert given_flags == [Flag("--mem-fraction-static", ("0.85",)), Flag("--trust-remote-code")]
    assert off == {"--enable-hierarchical-cache"}
