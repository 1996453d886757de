import pytest
from matplotlib.figure import Figure
from support.bench import make_result

from kvflow.bench.report import speedups
from kvflow.bench.result import SpeedupFigure, settings_of
from kvflow.bench.setting import PaperFigure


def marks(axes, shape):
    """Marks of a shape: (x, row, whether it is filled)."""
    return [
        (line.get_xdata()[0], line.get_ydata()[0], line.get_markerfacecolor() != "white")
        for line in axes.lines
        if line.get_marker() == shape
    ]


def test_draw_marks_every_arm_over_the_baseline_for_runs_and_first_tokens(tmp_path):
    [document] = settings_of(make_result(tmp_path)[0])
    figure = speedups.draw(Figure, [document])
    labels = [text.get_text() for text in figure.axes[0].get_yticklabels()]
    assert labels == ["lru", "full"]
    for axes, metric in zip(figure.axes, ("run", "ttft"), strict=True):
        slower = 1 / document.speedup("hicache/lru", metric).mean
        faster = document.speedup("full/hicache", metric).mean
        assert marks(axes, "o") == [(pytest.approx(slower), 0, True), (faster, 1, True)]


def test_draw_leaves_marks_empty_where_no_difference_is_claimed(tmp_path):
    [document] = settings_of(make_result(tmp_path)[0])
    unclear = SpeedupFigure(mean=1.5, low=0.9, high=2.1, claim="no difference")
    changed = {**document.speedups, "full/hicache": unclear}
    figure = speedups.draw(Figure, [document.model_copy(update={"speedups": changed})])
    assert marks(figure.axes[0], "o")[1] == (1.5, 1, False)


def test_draw_of_several_settings_puts_each_under_its_name(tmp_path):
    documents = settings_of(make_result(tmp_path, "one", "two")[0])
    figure = speedups.draw(Figure, documents)
    headings = {text.get_text(): text.get_position()[1] for text in figure.axes[0].texts}
    assert headings == {"one": 0, "two": 3}
    assert [row for _, row, _ in marks(figure.axes[0], "o")] == [1, 2, 4, 5]
    assert not figure.axes[1].texts


def test_draw_has_the_papers_figure_over_the_same_baseline_in_the_row_of_its_system(tmp_path):
    paper = PaperFigure({"hicache": 1.24, "lru": 1.42}, "on an H100")
    documents = settings_of(make_result(tmp_path, paper=paper)[0])
    figure = speedups.draw(Figure, documents)
    assert marks(figure.axes[0], "D") == [(1.24, 1, True)]
    assert marks(figure.axes[1], "D") == []
    legend = [text.get_text() for text in figure.legends[0].get_texts()]
    assert "the paper's KVFlow" in legend


def test_draw_shows_every_mark_within_its_panel(tmp_path):
    paper = PaperFigure({"hicache": 9.0}, "on an H100")
    figure = speedups.draw(Figure, settings_of(make_result(tmp_path, paper=paper)[0]))
    for axes in figure.axes:
        low, high = axes.get_xlim()
        assert all(low < x < high for x, *_ in marks(axes, "o") + marks(axes, "D"))
