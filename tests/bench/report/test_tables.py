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
        if line.startswith(("| arm", "| lru", "| hicache ", "| full "))
    ]
    assert set(widths) == {9}
