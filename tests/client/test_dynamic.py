import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.fake_server import FakeServer, to_ids

from kvflow.client.dynamic import DynamicPart, Heard, cut_pieces
from kvflow.client.server import connect
from kvflow.workload import Call, Feed

VOCABULARY = range(50, 90)


def call(tokens: int, predecessors: tuple[int, ...] = (), run: int = 0, index: int = 1) -> Call:
    feeds = (Feed("planner", predecessors),)
    return Call(run, index, "executor", 0, 0, feeds, None, tokens, 16)


async def text(
    tokens: int, *heard: Heard, dialect: str = "sglang", filler: str | None = None, run: int = 0
) -> str:
    predecessors = tuple(range(len(heard)))
    with FakeServer(dialect).running() as fake:
        async with connect(fake.url) as server:
            part = DynamicPart(server, VOCABULARY, 7, filler)
            return await part.text(call(tokens, predecessors, run), heard)


async def ids(tokens: int, *heard: Heard, filler: str | None = None) -> list[int]:
    with FakeServer().running() as fake:
        async with connect(fake.url) as server:
            part = DynamicPart(server, VOCABULARY, 7, filler)
            return await part.ids(call(tokens, tuple(range(len(heard)))), heard)


async def test_text_of_predecessors_names_each_and_what_it_said() -> None:
    said = await text(99, Heard("planner", "Do it."), Heard("critic", "Do not."))
    assert said == "planner: Do it.\n\ncritic: Do not."


async def test_text_is_cut_to_the_tokens_of_the_server() -> None:
    assert await text(12, Heard("planner", "abcdefgh")) == "planner: abc"


async def test_text_cut_within_a_character_leaves_the_character_out() -> None:
    assert await text(13, Heard("planner", "abcü")) == "planner: abc"[:13]


async def test_text_without_predecessors_is_a_task_that_the_seed_draws() -> None:
    task = await text(40)
    assert len(task.encode()) == 40
    assert task == await text(40)
    assert task != await text(40, run=1)


async def test_text_for_a_server_that_cannot_tokenize_is_cut_by_pieces_of_words() -> None:
    said = await text(4, Heard("planner", "one two"), dialect="openai")
    assert said == "planner: one"


async def test_text_of_filler_ignores_what_was_said_and_differs_between_fillers() -> None:
    said = Heard("planner", "Do it.")
    made = await text(30, said, filler="lru")
    assert len(made.encode()) == 30
    assert made == await text(30, filler="lru")
    assert made != await text(30, said, filler="hicache")


async def test_ids_of_predecessors_are_the_tokens_of_what_they_said() -> None:
    assert await ids(12, Heard("planner", "abcdefgh")) == to_ids("planner: abc")


async def test_ids_of_filler_are_so_many_of_the_vocabulary() -> None:
    made = await ids(64, filler="lru")
    assert len(made) == 64
    assert set(made) <= set(VOCABULARY)
    assert made != await ids(64, filler="hicache")


@pytest.mark.parametrize(
    ("filler", "predecessors", "known"),
    [(None, (), True), (None, (0,), False), ("lru", (0,), True)],
)
async def test_is_known_ahead_unless_predecessors_are_to_be_heard(
    filler: str | None, predecessors: tuple[int, ...], known: bool
) -> None:
    with FakeServer().running() as fake:
        async with connect(fake.url) as server:
            part = DynamicPart(server, VOCABULARY, 7, filler)
            assert part.is_known_ahead(call(5, predecessors)) is known


@given(st.text(), st.integers(0, 50))
def test_cut_pieces_is_a_beginning_and_grows_with_the_pieces(whole: str, most: int) -> None:
    cut = cut_pieces(whole, most)
    assert whole.startswith(cut)
    assert len(cut) <= len(cut_pieces(whole, most + 1))


@given(st.lists(st.sampled_from(["plan", "a", "answer", "!"]), max_size=30), st.integers(0, 30))
def test_cut_pieces_of_short_words_keeps_so_many(words: list[str], most: int) -> None:
    assert cut_pieces(" ".join(words), most).split() == words[:most]
