import msgspec
from support.frames import make_agent
from support.top_pictures import text_of, view_of
from support.top_scene import agents_at, frame_at, prefetches_at

from kvflow.frames import PrefetchStatus
from kvflow.tui.screen.agent_cells import prefix_bar
from kvflow.tui.screen.columns import place
from kvflow.tui.screen.ink import Ink
from kvflow.tui.screen.panels import agents, evictions, prefetches, waiting


def rows_of(module, view, width=70):
    placed = place(module.COLUMNS, width)
    return module.rows(view, {column.name: cells for column, cells in placed})


def column(rows, name):
    return [text_of([row.cells[name]]) for row in rows]


# Agents


def test_agents_who_speaks_first_comes_first_and_who_has_no_run_last():
    rows = rows_of(agents, view_of([frame_at(2)]))
    assert column(rows, "steps") == ["0", "1", "2", "3", "-"]
    assert column(rows, "agent")[0] == "peer/expresser"


def test_agents_prefix_bar_shows_device_host_and_absent():
    [planner] = [one for one in agents_at(3) if one.agent == "planner"]
    bar = prefix_bar([planner], view_of([], plain=True).glyphs, 20)
    assert planner.steps == 1
    assert text_of([bar]) == "###########========="


def test_agents_whose_prefix_is_not_known_have_no_bar():
    [*_, idle] = agents_at(0)
    assert text_of([prefix_bar([idle], view_of([]).glyphs, 20)]) == "unknown"


def test_agents_row_leads_to_the_node_that_ends_the_prefix():
    assert [row.node for row in rows_of(agents, view_of([frame_at(0)]))] == [10, 11, 12, 13, None]


def test_agents_of_the_only_application_leave_out_its_name_and_the_title_has_it():
    view = view_of([frame_at(0, agents=agents_at(0)[:4])])
    assert column(rows_of(agents, view), "agent")[0] == "planner"
    assert agents.title(view) == "agents of peer"
    assert agents.title(view_of([frame_at(0)])) == "agents"


def test_agents_warmed_for_nobody_yet_share_one_row_at_the_end():
    warmed = make_agent("kvflow-warm/planner", None, prefix_tokens=100, host_tokens=100, end=7)
    other = make_agent("kvflow-warm/other", None, prefix_tokens=100, device_tokens=100, end=8)
    rows = rows_of(
        agents, view_of([frame_at(0, agents=(warmed, other, *agents_at(0)))], plain=True)
    )
    assert column(rows, "agent")[-1] == "2 warmed"
    assert [row.node for row in rows[-2:]] == [None, None]
    assert len(rows) == len(agents_at(0)) + 1
    bar = column(rows, "bar")[-1]
    assert bar.count("#") == bar.count("=") == len(bar) / 2


def test_agents_whose_steps_seldom_come_true_are_marked():
    frame = frame_at(
        0, agents=(make_agent("app/sure", 1), make_agent("app/vague", 2, doubted=True))
    )
    assert column(rows_of(agents, view_of([frame])), "steps") == ["1", "2?"]


def test_agents_before_the_first_frame_are_none():
    assert rows_of(agents, view_of([])) == []


# Prefetches


def test_prefetches_on_their_way_come_first_then_the_newest():
    rows = rows_of(prefetches, view_of([frame_at(4)]))
    assert column(rows, "status")[:2] == ["loading", "arrived"]
    assert len(rows) == len(prefetches_at(4))


def test_prefetches_late_ones_are_told_as_errors():
    rows = rows_of(prefetches, view_of([frame_at(4)]))
    [piece] = next(row.cells["status"] for row in rows if row.cells["status"][0].text == "late")
    assert piece.ink is Ink.ERROR


def test_prefetches_summary_has_shares_of_tokens():
    assert prefetches.summary(view_of([frame_at(60)])) == "used 89% (5% late) wasted 2%"


def test_prefetches_summary_without_any_is_empty():
    assert prefetches.summary(view_of([])) == ""


def test_prefetch_status_each_has_an_ink():
    assert set(prefetches._INKS) == set(PrefetchStatus)


# Waiting calls


def test_waiting_calls_stand_in_queue_order_with_what_was_found():
    rows = rows_of(waiting, view_of([frame_at(0)], plain=True))
    assert column(rows, "agent") == ["untagged", "peer/executor", "peer/executor"]
    assert [set(bar) for bar in column(rows, "bar")] == [{"."}, {"#", "=", "."}, {"#", "."}]


def test_waiting_call_that_was_passed_over_says_how_often():
    assert column(rows_of(waiting, view_of([frame_at(0)])), "deferred") == ["", "2", ""]


def test_waiting_call_whose_run_has_a_long_name_shows_its_end():
    [call] = frame_at(0).waiting_calls[:1]
    frame = frame_at(0, waiting_calls=(msgspec.structs.replace(call, run="c08f990d4b1e-12"),))
    assert column(rows_of(waiting, view_of([frame]), 80), "run") == ["…4b1e-12"]


# Evictions


def test_evictions_newest_comes_first():
    rows = rows_of(evictions, view_of([frame_at(0)]))
    assert column(rows, "node")[:2] == ["#223", "#222"]


def test_evictions_steps_are_said_only_where_they_decided():
    rows = rows_of(evictions, view_of([frame_at(0)]))
    said = dict(zip(column(rows, "why"), column(rows, "steps"), strict=True))
    assert said == {"untagged": "", "steps": "3", "spent": ""}


def test_evictions_that_lost_what_may_be_asked_for_again_are_told_as_warnings():
    rows = rows_of(evictions, view_of([frame_at(0)]))
    inks = {
        (row.cells["why"][0].text, row.cells["outcome"][0].text): row.cells["outcome"][0].ink
        for row in rows
    }
    assert inks["untagged", "dropped"] is Ink.WARNING
    assert inks["spent", "dropped"] is inks["steps", "demoted"] is Ink.MUTED


def test_evictions_that_were_regretted_say_so_in_row_and_summary():
    view = view_of([frame_at(0)])
    assert column(rows_of(evictions, view), "regret").count("again") == 3
    assert evictions.summary(view) == "3 of the last 24 asked for again"


def test_agents_summary_counts_wrong_hints_and_is_empty_without_any():
    assert agents.summary(view_of([frame_at(0)])) == ""
    counters = msgspec.structs.replace(frame_at(0).counters, other_prompt=2)
    wrong = view_of([frame_at(0, counters=counters)])
    assert agents.summary(wrong) == "2 wrong hints: see the workflow"
