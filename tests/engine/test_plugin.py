import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import support.engine
from sglang.srt.mem_cache import registry
from sglang.srt.mem_cache.unified_cache import tree_core_registry
from support.real_cache import build

from kvflow.engine import factory, plugin
from kvflow.engine.settings import VARIABLE

pytestmark = pytest.mark.engine

SCRIPT = str(Path(support.engine.__file__).with_name("look_at_sglang.py"))


@pytest.fixture(scope="module")
def seen() -> dict[str, Any]:
    """Looks at a process of its own, since this one has been prepared for tests."""
    environ = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("KVFLOW", "SGLANG"))
    }
    environ["SGLANG_PLUGINS"] = "kvflow,kvflow_cpu"  # others may be installed here as well
    done = subprocess.run(
        [sys.executable, SCRIPT],
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout.splitlines()[-1]))


def test_register_without_being_asked_leaves_the_scheduler_as_it_was(seen):
    assert seen["unasked"]["changed_methods"] == []
    assert seen["unasked"]["components_are_stock"]
    assert seen["unasked"]["streams_are_stock"]


def test_register_without_being_asked_leaves_the_http_server_as_it_was(seen):
    assert seen["unasked"]["routes"] == [0, 0, 0]
    assert "kvflow_control" not in seen["unasked"]["communicators"]
    assert seen["unasked"]["lifespan_is_stock"]


def test_register_without_being_asked_adds_one_name_to_two_registries(seen):
    assert seen["unasked"]["caches"].count("kvflow") == 1
    assert seen["unasked"]["cores"].count("kvflow") == 1


def test_register_without_being_asked_loads_no_user_interface(seen):
    loaded = {module.split(".")[1] for module in seen["unasked"]["loaded"]}
    assert not loaded & {"cli", "tui", "bench", "plan"}


def test_register_again_without_being_asked_changes_nothing(seen):
    assert seen["unasked_again"] == seen["unasked"]


def test_register_twice_when_asked_adds_routes_and_message_once(seen):
    assert seen["asked_twice"]["routes"] == [1, 1, 1]
    assert seen["asked_twice"]["communicators"].count("kvflow_control") == 1
    assert not seen["asked_twice"]["lifespan_is_stock"]
    assert not seen["lifespan_was_wrapped_again"]


def test_register_when_asked_hooks_no_scheduler_before_a_cache_is_built(seen):
    assert seen["asked_twice"]["changed_methods"] == []


def test_register_twice_keeps_the_factories():
    plugin.register()
    assert registry.get_radix_cache_factory("kvflow") is factory.build_cache
    assert tree_core_registry.get_tree_core_factory("kvflow") is factory.build_tree


@pytest.mark.parametrize(
    ("words", "environ", "asked"),
    [
        (["serve", "--radix-cache-backend", "kvflow"], {}, True),
        (["serve", "--radix-cache-backend=kvflow"], {}, True),
        (["serve"], {VARIABLE: "{}"}, True),
        (["serve", "--model-path", "kvflow/model"], {}, False),
        (["serve"], {}, False),
    ],
)
def test_server_counts_as_asked_for_kvflow_by_its_flag_or_its_settings(
    monkeypatch, words, environ, asked
):
    monkeypatch.delenv(VARIABLE, raising=False)
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "argv", words)
    assert plugin._asked_for() is asked


def test_factory_hooks_the_scheduler_once_however_many_caches_it_builds():
    build()
    hooked = support.engine.Scheduler._add_request_to_queue
    build()
    assert hooked.__kvflow__
    assert support.engine.Scheduler._add_request_to_queue is hooked
