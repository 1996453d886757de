import tracemalloc
from typing import Any

import pytest

from kvflow.client.http import NonsenseError, RefusedError
from kvflow.client.stream import ChatReader, GenerateReader


class Clock:
    """Counts a second each time it is looked at."""

    def __init__(self) -> None:
        self.now = -1.0

    def __call__(self) -> float:
        self.now += 1.0
        return self.now


def chat(*events: dict[str, Any], sglang: bool = False) -> ChatReader:
    reader = ChatReader("call 0.1 (a)", Clock(), lambda: None, sglang)
    for event in events:
        reader.take(event)
    return reader


def generate(*events: dict[str, Any]) -> GenerateReader:
    reader = GenerateReader("call 0.1 (a)", Clock(), lambda: None)
    for event in events:
        reader.take(event)
    return reader


def chunk(finish: str | None = None, **delta: str) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def event(*ids: int, count: int, finish: dict[str, Any] | None = None) -> dict[str, Any]:
    meta = {"finish_reason": finish, "completion_tokens": count, "prompt_tokens": 5}
    return {"text": "".join(map(chr, ids)), "output_ids": list(ids), "meta_info": meta}


ROLE = chunk(role="assistant", content="")
STOP = {"type": "stop", "matched": 2}


def test_chat_reader_first_token_of_another_server_is_the_first_text() -> None:
    answer = chat(ROLE, chunk(content="a"), chunk("stop")).answer()
    assert (answer.text, answer.ttft_s, answer.latency_s) == ("a", 1.0, 2.0)


def test_chat_reader_first_token_may_be_a_thought_that_is_no_part_of_the_text() -> None:
    answer = chat(chunk(reasoning_content="hm"), chunk(content="a"), chunk("stop")).answer()
    assert (answer.text, answer.ttft_s) == ("a", 1.0)


def test_chat_reader_first_token_of_sglang_is_the_first_event() -> None:
    times = []
    reader = ChatReader("call", Clock(), lambda: times.append(1), sglang=True)
    reader.take(ROLE)
    assert times == [1]


@pytest.mark.parametrize("sglang", [True, False])
def test_chat_reader_first_text_is_of_the_first_token_and_the_end_is_none(sglang: bool) -> None:
    texts = [chunk(content=letter) for letter in "abc"]
    answer = chat(ROLE, *texts, chunk("stop"), sglang=sglang).answer()
    assert answer.token_times_s == (1.0, 2.0)


def test_chat_reader_times_thoughts_as_tokens() -> None:
    thoughts = [chunk(reasoning_content="hm")] * 2
    assert chat(*thoughts, chunk(content="a"), chunk("stop")).answer().token_times_s == (1.0, 2.0)


def test_chat_reader_of_an_empty_answer_has_its_end_as_first_token() -> None:
    answer = chat(ROLE, chunk("stop")).answer()
    assert (answer.text, answer.ttft_s, answer.latency_s) == ("", 1.0, 1.0)


def test_chat_reader_without_usage_or_extras_knows_no_counts() -> None:
    answer = chat(chunk(content="a"), chunk("stop"), sglang=True).answer()
    assert answer.prompt_tokens is answer.output_tokens is answer.cached_tokens is None
    assert answer.cached_device is answer.cached_host is answer.output_ids is None


def test_chat_reader_extras_of_sglang_without_details_mean_nothing_was_cached() -> None:
    answer = chat(chunk("stop"), {"choices": [], "sglext": {"output_ids": [[7, 8]]}}).answer()
    assert (answer.cached_tokens, answer.cached_device, answer.cached_host) == (0, 0, 0)
    assert answer.output_ids == (7, 8)


def test_chat_reader_counts_storage_among_the_cached_tokens() -> None:
    details = {"device": 3, "host": 4, "storage": 5, "storage_backend": "file"}
    answer = chat(chunk("stop"), {"choices": [], "sglext": {"cached_tokens_details": details}})
    assert answer.answer().cached_tokens == 12


def test_chat_reader_joins_a_character_that_two_chunks_share() -> None:
    answer = chat(chunk(content="\ud83d"), chunk(content="\ude00"), chunk("stop")).answer()
    assert answer.text == "\U0001f600"


def test_chat_reader_replaces_half_a_character() -> None:
    assert chat(chunk(content="a\ud83d"), chunk("stop")).answer().text == "a\ufffd"


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"choices": "none"},
        {"choices": [{"finish_reason": None}]},
        chunk(content=["a"]),  # type: ignore[arg-type]
        {"choices": [], "usage": {"prompt_tokens": "many"}},
        {"choices": [], "sglext": {"cached_tokens_details": [1]}},
    ],
)
def test_chat_reader_of_an_event_of_the_wrong_shape_says_what_is_wrong(wrong: Any) -> None:
    with pytest.raises(NonsenseError, match=r"call 0\.1 \(a\)"):
        chat(wrong)


def test_chat_reader_without_a_finish_reason_was_cut() -> None:
    with pytest.raises(NonsenseError, match="cut"):
        chat(chunk(content="a")).answer()


def test_chat_reader_of_an_abort_is_refused() -> None:
    with pytest.raises(RefusedError) as refusal:
        chat(chunk(content="a"), chunk("abort"), sglang=True)
    assert refusal.value.what == "call 0.1 (a): the server aborted the call"
    assert (refusal.value.status, refusal.value.why) == (500, "it does not say why")


def test_generate_reader_takes_the_last_of_events_that_hold_all_so_far() -> None:
    answer = generate(event(65, count=1), event(65, 66, count=2, finish=STOP)).answer()
    assert (answer.text, answer.output_ids, answer.finish_reason) == ("AB", (65, 66), "stop")


def test_generate_reader_joins_events_that_hold_what_is_new() -> None:
    answer = generate(event(65, count=1), event(66, 67, count=3, finish=STOP)).answer()
    assert (answer.text, answer.output_ids) == ("ABC", (65, 66, 67))


def test_generate_reader_keeps_no_event_that_a_later_one_repeats() -> None:
    reader = GenerateReader("call 0.1 (a)", Clock(), lambda: None)
    tracemalloc.start()
    for count in range(1, 1001):
        reader.take(event(*[65] * count, count=count))
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept < 500_000  # of 1000 lists of up to 1000 ids, 4 MB


def test_generate_reader_first_token_is_the_first_event() -> None:
    answer = generate(event(65, count=1), event(65, 66, count=2, finish=STOP)).answer()
    assert (answer.ttft_s, answer.latency_s) == (1.0, 3.0)


def test_generate_reader_times_each_further_token_from_the_first() -> None:
    events = event(65, count=1), event(65, 66, count=2), event(65, 66, 67, count=3, finish=STOP)
    answer = generate(*events).answer()
    assert (answer.token_times_s, answer.itl_s) == ((1.0, 2.0), [1.0, 1.0])


def test_generate_reader_counts_tokens_that_come_together_once_and_a_bare_end_never() -> None:
    answer = generate(event(65, count=1), event(66, 67, count=3), event(count=3, finish=STOP))
    assert answer.answer().token_times_s == (1.0,)


def test_generate_reader_of_an_answer_in_one_piece_has_no_time_between_tokens() -> None:
    answer = generate(event(65, 66, count=2, finish=STOP)).answer()
    assert (answer.token_times_s, answer.itl_s) == ((), [])


def test_generate_reader_of_an_abort_repeats_the_reason() -> None:
    reason = {"type": "abort", "message": "no memory left", "status_code": 503}
    aborted = {"text": "", "output_ids": [], "meta_info": {"finish_reason": reason}}
    with pytest.raises(RefusedError) as refusal:
        generate(event(65, count=1), aborted)
    assert (refusal.value.status, refusal.value.why) == (503, "no memory left")


@pytest.mark.parametrize("events", [(), (event(65, count=1),)], ids=["none", "unfinished"])
def test_generate_reader_without_an_end_was_cut(events: tuple[dict[str, Any], ...]) -> None:
    with pytest.raises(NonsenseError, match="cut"):
        generate(*events).answer()
