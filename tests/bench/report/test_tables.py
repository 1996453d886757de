import csv
import io

from support.bench import make_result

from kvflow.bench.report import tables
from kvflow.bench.result import SpeedupFigure, settings_of
from kvflow.bench.setting import PaperFigure


def test_csv_has_a_row_for_each_setting_and_arm(tmp_path):
    result, _ = make_result(tmp_path, "one", "two")
    rows = list(csv.DictReader(io.StringIO(tables.as_csv(settings_of(result)))))
    assert [(row["setting"], row["arm"]) for row in rows] == [
        (setting, arm) for setting in ("one", "two") for arm in ("lru", "hicache", "full")
    ]
    first = settings_of(result)[0].arms["lru"]
    assert float(rows[0]["run_s_p95"]) == first.run_s.p95
    assert float(rows[0]["mean_ttft_ms"]) == first.metrics["mean_ttft_ms"]


def test_markdown_has_words_a_row_for_each_arm_and_every_comparison(tmp_path):
    text = tables.as_markdown(settings_of(make_result(tmp_path)[0]))
    assert text.index("**Expect kvflow") < text.index("| arm | run s |")
    for pair in ("hicache/lru", "full/lru", "full/hicache"):
        assert f"| {pair} | " in text
    assert "| a | full | " in text  # by agent


def cells_of(text, row) -> list[list[str]]:
    """The cells of every row that begins so."""
    lines = [line for line in text.splitlines() if line.startswith(f"| {row} |")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_overview_has_a_row_for_each_setting_with_every_other_arm_over_the_baseline(tmp_path):
    documents = settings_of(make_result(tmp_path, "one", "two")[0])
    text = "\n".join(tables.overview(documents))
    assert cells_of(text, "whole run") == [["whole run", "lru", "full"]]
    assert cells_of(text, "first token") == [["first token", "lru", "full"]]
    for name, document in zip(("one", "two"), documents, strict=True):
        for row, metric in zip(cells_of(text, name), ("run", "ttft"), strict=True):
            full = document.speedup("full/hicache", metric)
            assert row[2] == f"**{full.mean:.2f} ({full.low:.2f} to {full.high:.2f})**"
            assert row[1].startswith("**0.")


def test_overview_is_bold_only_where_a_difference_is_claimed(tmp_path):
    documents = settings_of(make_result(tmp_path, "one", "two")[0])
    unclear = SpeedupFigure(mean=1.5, low=0.9, high=2.1, claim="no difference")
    speedups = {**documents[0].speedups, "full/hicache": unclear}
    changed = [documents[0].model_copy(update={"speedups": speedups}), documents[1]]
    row, _ = cells_of("\n".join(tables.overview(changed)), "one")
    assert row[2] == "1.50 (0.90 to 2.10)"


def test_overview_has_the_papers_figures_beside_those_of_whole_runs(tmp_path):
    paper = PaperFigure({"hicache": 1.24, "lru": 1.42}, "on an H100")
    result, _ = make_result(tmp_path, "one", "two", paper=paper)
    runs, tokens = cells_of("\n".join(tables.overview(settings_of(result))), "one")
    assert runs[-1] == "1.24 over hicache, 1.42 over lru"
    assert len(tokens) == len(runs) - 1


def test_overview_tells_what_was_not_measured(tmp_path):
    documents = settings_of(make_result(tmp_path, "one", "two")[0])
    cut = documents[0].model_copy(update={"speedups": {"ttft": {}}})
    row, _ = cells_of("\n".join(tables.overview([cut, documents[1]])), "one")
    assert row == ["one", "-", "-"]


def test_overview_of_one_setting_is_its_section(tmp_path):
    documents = settings_of(make_result(tmp_path)[0])
    assert tables.overview(documents) == []
    assert "Overview" not in tables.as_markdown(documents)


def test_markdown_tables_are_as_wide_as_their_headings(tmp_path):
    widths = [
        line.count("|")
        for line in tables.as_markdown(settings_of(make_result(tmp_path)[0])).splitlines()
        if line.startswith(("| arm | run s", "| arm | run p50", "| lru", "| hicache ", "| full "))
    ]
    # The figures, the tails, and what was used (its heading begins otherwise).
    assert widths == [9] * 4 + [12] * 4 + [6] * 3


def test_markdown_says_what_kvflow_did_where_it_says_anything(tmp_path):
    result, _ = make_result(tmp_path)
    [document] = settings_of(result)
    assert "what kvflow did" not in tables.section(document)
    counted = {"prefetches": 7.0, "waits": 0.0, "unknown_to_readers": 3.0}
    full = document.arms["full"].model_copy(update={"engine": counted})
    text = tables.section(document.model_copy(update={"arms": {**document.arms, "full": full}}))
    assert "| what kvflow did | full |" in text
    assert "| prefetches | 7 |" in text
    assert "waited" not in text  # never happened


def test_markdown_says_what_was_used_and_what_could_not_be_read(tmp_path):
    result, _ = make_result(tmp_path)
    [document] = settings_of(result)
    used = {"cpu_cores": 1.234, "h2d_gbps": 0.00357, "link_share": 0.25}
    full = document.arms["full"].model_copy(update=used)
    text = tables.section(document.model_copy(update={"arms": {**document.arms, "full": full}}))
    assert "| full | 1.23 | - | 0.00357 | 25% |" in text
    assert "| lru | - | - | - | - |" in text


def test_markdown_says_what_plain_chats_got(tmp_path):
    result, _ = make_result(tmp_path)
    [document] = settings_of(result)
    full = document.arms["full"].model_copy(update={"plain_ttft_ms": 1234.5})
    text = tables.section(document.model_copy(update={"arms": {**document.arms, "full": full}}))
    assert "first token of the plain chats: 1,234 ms with full" in text


def test_markdown_says_how_many_calls_a_second_were_good(tmp_path):
    documents = settings_of(make_result(tmp_path, limits={"ttft": 300.0})[0])
    assert "- goodput, calls a second within ttft:300: " in tables.as_markdown(documents)


def test_markdown_says_which_calls_came_of_agents_that_the_server_does_not_know(tmp_path):
    [document] = settings_of(make_result(tmp_path)[0])
    full = document.arms["full"].model_copy(update={"engine": {"unknown_agents": 7.0}})
    text = tables.section(document.model_copy(update={"arms": {**document.arms, "full": full}}))
    assert "| calls of agents that the server does not know | 7 |" in text
