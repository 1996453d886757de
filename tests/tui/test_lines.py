import pytest
from rich.cells import cell_len
from support.frames import busy_frame, make_agent, make_frame, make_node
from syrupy.assertion import SnapshotAssertion

from kvflow.frames import Frame, State, Why
from kvflow.tui.filter import parse
from kvflow.tui.lines import picture
from kvflow.tui.rows import Column, Sort, View, flatten
from kvflow.tui.source import Link, Status
from kvflow.tui.store import Store

LIVE = Status(Link.LIVE, "LIVE")
URL = "http://127.0.0.1:30000"
NODES = (
    make_node(1, tokens=80, state=State.MIRRORED, steps=0, why=Why.STEPS, hits=9, last_access=90),
    make_node(2, 1, tokens=260, steps=0, why=Why.STEPS, agents=("peer/executor",), locks=2, hits=4),
    make_node(3, 1, tokens=240, state=State.LOADING, why=Why.STEPS, steps=1, locks=1),
    make_node(4, 3, tokens=1200, why=Why.SPENT, last_access=70.0),
    make_node(5, 1, tokens=240, state=State.HOST, why=Why.STEPS, steps=3, agents=("a/b", "peer/c")),
    make_node(6, tokens=12_345, state=State.OFFLOADING, last_access=99.0),
)


def text_of(
    *frames: Frame,
    view: View | None = None,
    width: int = 80,
    most: int = 20,
    plain: bool = False,
    status: Status = LIVE,
    label: str = URL,
) -> str:
    store = Store()
    for frame in frames:
        store.apply(frame)
    view = view or View()
    lines = picture(
        store,
        flatten(store, view),
        view.sort,
        status,
        label,
        width=width,
        most=most,
        plain=plain,
    )
    return "\n".join("".join(piece.text for piece in line).rstrip() for line in lines)


@pytest.mark.parametrize(("width", "plain"), [(80, False), (80, True), (60, False), (120, False)])
def test_picture_of_a_busy_server(snapshot: SnapshotAssertion, width: int, plain: bool) -> None:
    assert text_of(busy_frame(*NODES), width=width, plain=plain) == snapshot


def test_picture_of_a_server_where_nothing_has_happened(snapshot: SnapshotAssertion) -> None:
    assert text_of(make_frame(host=None, running=0)) == snapshot


def test_picture_of_what_is_asked_for(snapshot: SnapshotAssertion) -> None:
    view = View(parse("why:steps"), Sort(Column.TOKENS, descending=True), flat=True)
    assert text_of(busy_frame(*NODES), view=view, most=2) == snapshot


def test_picture_in_ascii_has_nothing_else() -> None:
    assert text_of(busy_frame(*NODES), plain=True).isascii()


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize("width", [60, 80, 120])
def test_picture_is_never_wider_than_it_may_be(width: int, plain: bool) -> None:
    long = make_agent("a-client-with-a-long-name/and-an-agent-with-a-longer-one-than-fits-anywhere")
    deep = [make_node(1), *(make_node(one, one - 1, tokens=10**9) for one in range(2, 90))]
    text = text_of(
        busy_frame(*deep, agents=(long, make_agent("x/y", 64, prefix_tokens=10**8))),
        width=width,
        most=99,
        plain=plain,
        status=Status(Link.REPLAY, "REPLAY 1:02:03/2:03:04 PAUSED"),
        label="https://a-server-with-a-long-name.example.org:30000/behind/a/proxy",
    )
    assert max(cell_len(line) for line in text.splitlines()) <= width


def test_picture_says_that_kvflow_has_failed_in_the_server() -> None:
    assert "kvflow has failed in this server" in text_of(busy_frame(degraded=True))
    assert "failed" not in text_of(busy_frame())


def test_picture_says_what_leaves_only_the_eviction_order() -> None:
    text = text_of(busy_frame(limits=("no host tier", "hybrid model")), width=60)
    assert text.splitlines()[1] == "eviction order only: no host tier, hybrid model"
    assert "order only" not in text_of(busy_frame())
    assert "order only" not in text_of(busy_frame(mode="evict", limits=("no host tier",)))


def test_picture_says_which_hints_were_wrong() -> None:
    wrong = "\n2 hints ignored: too long\n"
    assert wrong in text_of(make_frame(counters={"bad_hints": {"too_long": 2}}))
    assert "ignored" not in text_of(busy_frame())


def test_picture_says_what_it_leaves_out() -> None:
    text = text_of(busy_frame(*NODES, tree_nodes=5000, nodes_left_out=True), most=4)
    assert "and 1 more agent\n" in text
    assert text.endswith("6 of 5,000 nodes are known\nand 2 more rows")


def test_picture_names_the_client_only_where_there_are_several() -> None:
    one = (make_agent("peer/planner"), make_agent("peer/writer"))
    assert "peer/" not in text_of(make_frame(agents=one))
    assert "batch/planner" in text_of(make_frame(agents=(*one, make_agent("batch/planner"))))


def test_picture_says_what_was_warmed_for_nobody_yet() -> None:
    warmed = make_agent("kvflow-warm/planner", None, end=3)
    line = "warmed, and asked for by nobody yet: planner"
    assert line in text_of(make_frame(agents=(warmed,))).splitlines()
    text = text_of(make_frame(agents=(warmed, make_agent("peer/writer"))))
    assert line in text.splitlines()
    assert "peer/" not in text


def test_picture_says_what_is_served_and_since_when_if_the_server_tells() -> None:
    told = text_of(busy_frame(model="tiny", uptime_s=75.0))
    assert "\nmodel tiny, up 1m\n" in told
    assert "model" not in text_of(busy_frame())


def test_picture_gives_a_terminal_no_orders() -> None:
    agent = make_agent("evil\x1b[2J/pla\x9bnner")
    node = make_node(1, agents=("evil\x1b[2J/pla\x9bnner",), why=Why.STEPS)
    shown = text_of(make_frame(node, agents=(agent,), model="m\x07", mode="x\x1b"), label="u\x1b")
    assert "pla\ufffdnner" in shown
    assert shown.replace("\n", "").isprintable()
