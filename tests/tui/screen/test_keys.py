import subprocess
import sys
from itertools import chain
from pathlib import Path

from textual.binding import Binding

from kvflow.tui.screen.keymap import shipped
from kvflow.tui.screen.keys import GROUPS, names, table

ROOT = Path(__file__).parents[3]
ALL = shipped()


def test_key_tables_of_the_document_are_up_to_date():
    command = [sys.executable, str(ROOT / "scripts" / "top_keys.py"), "--check"]
    run = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert run.returncode == 0, run.stderr


def test_bindings_each_have_an_id_of_their_own_in_a_known_group():
    ids = [binding.id for binding in ALL]
    assert len(set(ids)) == len(ids)
    assert {one.partition(".")[0] for one in ids} == set(GROUPS)


def test_bindings_no_key_does_two_things():
    keys = list(chain.from_iterable(binding.key.split(",") for binding in ALL))
    assert len(set(keys)) == len(keys)


def test_names_are_what_is_typed_or_written_on_the_key():
    assert names(Binding("question_mark,f1,left,enter", "x")) == ["?", "f1", "left", "enter"]


def test_table_has_every_key_once():
    rows = [line for line in table(ALL).splitlines() if line.startswith("| ") and "`" in line]
    assert len(rows) == len(ALL)
