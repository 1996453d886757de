import msgspec
from support.frames import make_agent
from support.top_pictures import inks_of, text_of, view_of
from support.top_scene import agents_at, frame_at

from kvflow.tui.screen.ink import Ink, width_of
from kvflow.tui.screen.workflow import draw


def lines_at(moment, width=100, **frame):
    return draw(view_of([frame_at(moment, **frame)], plain=True), width, 40)


def words(lines):
    return [line.split() for line in text_of(lines).splitlines()]


def test_workflow_agents_stand_in_the_order_in_which_they_speak():
    shown = words(lines_at(2))
    assert [row[0] for row in shown[2:6]] == ["expresser", "reviewer", "planner", "executor"]


def test_workflow_who_speaks_now_and_next_is_said():
    shown = words(lines_at(2))
    assert shown[2][1:4] == [">", "now", "x2"]
    assert shown[3][1] == "next"


def test_workflow_draws_a_block_for_each_step_until_an_agent_speaks():
    lines = text_of(lines_at(2, width=120)).splitlines()
    lane = lines[1].index("to its turn")
    assert [line[lane : lane + 4].strip() for line in lines[2:6]] == ["", "=", "==", "==="]


def test_workflow_many_steps_end_in_a_plus():
    far = msgspec.structs.replace(agents_at(0)[0], steps=40)
    assert "=" * 12 + "+" in text_of(lines_at(0, width=120, agents=(far,)))


def test_workflow_says_how_much_of_each_prefix_is_where():
    # The planner's steps are 1: half of it is on the device.
    planner = next(row for row in words(lines_at(3)) if row[0] == "planner")
    assert planner[-5:-2] == ["704", "576", "0"]


def test_workflow_client_of_whom_nobody_waits_comes_last():
    titles = [row[0] for row in words(lines_at(0)) if "live" in row]
    assert titles == ["peer", "nightly-report"]


def test_workflow_runs_say_who_is_in_flight_and_who_is_next():
    lines = lines_at(0)
    first = next(row for row in words(lines) if row and row[0] == "r40")
    assert first == ["r40", "planner", "executor", "1", "expresser", "2", "reviewer", "3"]
    assert Ink.ACCENT in inks_of(lines, "planner")


def test_workflow_runs_that_rest_or_are_only_expected_say_so():
    last = next(row for row in words(lines_at(0)) if row and row[0] == "r43")
    assert last[1:5] == ["expected", "idle", "3", "s"]


def test_workflow_that_does_not_know_all_live_runs_says_so_and_counts_none_of_a_client():
    first, *others = text_of(lines_at(0, runs=90)).splitlines()
    assert first == "4 of 90 live runs are listed"
    assert "live runs" not in "\n".join(others)
    assert others[1].split() == ["peer", "2", "calls", "in", "flight"]


def test_workflow_that_knows_all_live_runs_counts_those_of_each_client():
    first = words(lines_at(0))[0]
    assert first == ["peer", "4", "live", "runs,", "2", "calls", "in", "flight"]


def test_workflow_without_agents_says_what_is_missing():
    assert "calls need a tag" in text_of(lines_at(0, agents=()))


def test_workflow_agent_that_no_path_leads_to_has_no_lane():
    far = make_agent("peer/writer", 64)
    shown = words(lines_at(0, width=120, agents=(far,)))
    assert shown[2][:3] == ["writer", "64+", "unknown"]


def test_workflow_says_what_was_warmed_for_nobody_yet_and_has_no_block_for_it():
    warmed = make_agent("kvflow-warm/writer", None, prefix_tokens=9, end=77)
    text = text_of(lines_at(0, agents=(warmed, *frame_at(0).agents)))
    assert text.splitlines()[-1] == "warmed, and asked for by nobody yet: writer"
    assert "kvflow-warm" not in text


def test_workflow_before_the_first_frame_says_so():
    assert text_of(draw(view_of([]), 78, 20)) == "no frame yet"


def test_workflow_run_that_has_no_room_ends_in_an_ellipsis():
    lines = text_of(lines_at(0, width=60)).splitlines()
    [run] = [line for line in lines if line.startswith("r43")]
    assert run.endswith("..")
    assert len(run) == 60


def test_workflow_lines_are_no_wider_than_the_view():
    assert all(width_of(line) <= 78 for line in lines_at(0, width=78))


def test_workflow_says_in_words_which_hints_were_wrong():
    counters = msgspec.structs.replace(frame_at(0).counters, bad_hints={"too_long": 2})
    lines = lines_at(0, counters=counters)
    assert text_of(lines).splitlines()[-1] == "2 hints ignored: too long"
    assert Ink.WARNING in inks_of(lines, "ignored")
