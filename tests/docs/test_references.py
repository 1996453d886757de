"""Documents that are made from the code are what the code would make."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from kvflow import __version__

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("script", ["cli_reference.py", "recipe_reference.py"])
def test_generated_reference_is_up_to_date(script):
    command = [sys.executable, str(ROOT / "scripts" / script), "--check"]
    run = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert run.returncode == 0, run.stderr


def test_changelog_begins_with_what_is_unreleased():
    text = (ROOT / "CHANGELOG.md").read_text()
    versions = re.findall(r"^## \[(.+?)\]", text, flags=re.MULTILINE)
    assert versions[0] == "Unreleased"
    # A release names its version in both places; between releases the version is a .dev.
    assert ".dev" in __version__ or __version__ in versions


def test_links_between_documents_lead_somewhere():
    for document in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]:
        for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", document.read_text()):
            assert (document.parent / target).exists(), f"{document.name}: {target}"
