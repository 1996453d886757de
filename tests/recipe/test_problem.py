from kvflow.errors import ExitCode, RecipeError
from kvflow.recipe.problem import MAX_SHOWN, InvalidRecipeError, Mark, Problem, did_you_mean


def problem(line: int, message: str = "wrong") -> Problem:
    return Problem("f.yaml", Mark(line, 2), "agents.a", message)


def test_problem_is_written_as_file_line_column_path_message() -> None:
    assert str(problem(3)) == "f.yaml:3:2: agents.a: wrong"


def test_problem_without_a_path_leaves_it_out() -> None:
    assert str(Problem("f.yaml", Mark(1, 1), "", "wrong")) == "f.yaml:1:1: wrong"


def test_invalid_recipe_shows_problems_in_the_order_of_the_file() -> None:
    error = InvalidRecipeError([problem(9, "late"), problem(3, "early")])
    lines = str(error).splitlines()
    assert lines[0] == "error: f.yaml:3:2: agents.a: early"
    assert lines[1] == "       f.yaml:9:2: agents.a: late"
    assert [found.mark.line for found in error.problems] == [3, 9]


def test_invalid_recipe_with_very_many_problems_shows_the_first() -> None:
    error = InvalidRecipeError([problem(line) for line in range(1, 1000)])
    assert len(error.problems) == MAX_SHOWN
    assert error.what.endswith("... and maybe more")


def test_invalid_recipe_is_a_recipe_error_and_ends_as_misuse() -> None:
    error = InvalidRecipeError([problem(1)])
    assert isinstance(error, RecipeError)
    assert error.exit_code is ExitCode.USAGE


def test_did_you_mean_names_the_nearest_word_or_nothing() -> None:
    assert did_you_mean("plnner", ["planner", "reviewer"]) == " (did you mean 'planner'?)"
    assert did_you_mean("zzz", ["planner", "reviewer"]) == ""
