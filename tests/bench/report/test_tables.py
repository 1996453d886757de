import csv
import io

from support.bench import make_result

from kvflow.bench.report import tables
from kvflow.bench.result import settings_of


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
