import os
from pathlib import Path

import pytest

from kvflow.recipe.model import Recipe
from kvflow.recipe.prompts import MAX_BYTES, read_prompts


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    inside = tmp_path / "flows"
    (inside / "prompts").mkdir(parents=True)
    (tmp_path / "secret.md").write_text("outside", encoding="utf-8")
    return inside


def read(folder: Path, prompt: str) -> tuple[str | None, str | None]:
    """The text of agent a, and what is said against its file."""
    agents = {"a": {"prompt": prompt}, "b": {"fixed_tokens": 8}}
    recipe = Recipe.model_validate({"kvflow": 1, "name": "flow", "agents": agents})
    texts, found = read_prompts(recipe, folder)
    assert all(finding.at == ("agents", "a", "prompt") for finding in found)
    return texts.get("a"), found[0].message if found else None


def test_read_prompts_gives_texts_of_agents_that_have_a_file(folder: Path) -> None:
    (folder / "prompts" / "a.md").write_text("\n You are ä.\n\n", encoding="utf-8")
    assert read(folder, "prompts/a.md") == ("You are ä.", None)


def test_read_prompts_byte_order_mark_is_no_text(folder: Path) -> None:
    (folder / "a.md").write_text("Hello", encoding="utf-8-sig")
    assert read(folder, "a.md") == ("Hello", None)


def test_read_prompts_link_inside_the_folder_is_followed(folder: Path) -> None:
    (folder / "prompts" / "a.md").write_text("Hello", encoding="utf-8")
    (folder / "link.md").symlink_to("prompts/a.md")
    assert read(folder, "link.md") == ("Hello", None)


def test_read_prompts_dots_that_stay_inside_are_fine(folder: Path) -> None:
    (folder / "a.md").write_text("Hello", encoding="utf-8")
    assert read(folder, "prompts/../a.md") == ("Hello", None)


def test_read_prompts_folder_that_is_a_link_itself_is_fine(folder: Path, tmp_path: Path) -> None:
    (folder / "a.md").write_text("Hello", encoding="utf-8")
    (tmp_path / "link").symlink_to(folder)
    assert read(tmp_path / "link", "a.md") == ("Hello", None)


@pytest.mark.parametrize("prompt", ["../secret.md", "prompts/../../secret.md", "/etc/hosts"])
def test_read_prompts_path_that_leads_out_is_refused(folder: Path, prompt: str) -> None:
    assert read(folder, prompt) == (None, f"{prompt!r} leads out of the recipe's folder")


@pytest.mark.parametrize("target", ["../secret.md", "/etc/hosts"])
def test_read_prompts_link_that_leads_out_is_refused(folder: Path, target: str) -> None:
    (folder / "a.md").symlink_to(target)
    assert read(folder, "a.md") == (None, "'a.md' leads out of the recipe's folder")


def test_read_prompts_linked_folder_that_leads_out_is_refused(folder: Path) -> None:
    (folder / "out").symlink_to("..")
    assert read(folder, "out/secret.md") == (
        None,
        "'out/secret.md' leads out of the recipe's folder",
    )


def test_read_prompts_links_in_a_circle_are_refused(folder: Path) -> None:
    (folder / "a.md").symlink_to("b.md")
    (folder / "b.md").symlink_to("a.md")
    assert read(folder, "a.md")[0] is None


def test_read_prompts_pipe_is_refused_and_not_waited_for(folder: Path) -> None:
    os.mkfifo(folder / "a.md")
    assert read(folder, "a.md") == (None, f"'a.md' is no file in {folder}")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b" \n\t\n", "is empty"),
        (b"ab\xff", "is not UTF-8 text (byte 2)"),
        (b"x" * (MAX_BYTES + 1), f"is larger than {MAX_BYTES:,} bytes"),
    ],
)
def test_read_prompts_content_that_is_no_prompt_is_refused(
    folder: Path, content: bytes, message: str
) -> None:
    (folder / "a.md").write_bytes(content)
    assert read(folder, "a.md") == (None, f"'a.md' {message}")


@pytest.mark.parametrize(
    ("prompt", "message"),
    [("b.md", "is no file in"), ("prompts", "is no file in"), ("a\0", "is no path")],
)
def test_read_prompts_what_is_no_file_is_refused(folder: Path, prompt: str, message: str) -> None:
    assert message in str(read(folder, prompt)[1])


def test_read_prompts_name_too_long_is_refused(folder: Path) -> None:
    assert read(folder, "a" * 5000)[0] is None
