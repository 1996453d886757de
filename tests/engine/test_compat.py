import inspect
import logging
from importlib.metadata import version

import pytest
import support.engine  # noqa: F401 - before SGLang
from sglang.srt.managers.scheduler import Scheduler
from sglang.srt.mem_cache.cache_init_params import CacheInitParams
from sglang.srt.mem_cache.unified_cache.components.full import FullComponent
from sglang.srt.mem_cache.unified_cache.unified_tree_core import UnifiedTreeCore
from sglang.srt.mem_cache.unified_radix_cache import UnifiedRadixCache
from support.real_cache import build

from kvflow.engine import compat
from kvflow.engine.cache import KvflowRadixCache
from kvflow.engine.component import KvflowFullComponent
from kvflow.engine.tree import KvflowTreeCore

pytestmark = pytest.mark.engine


def test_check_passes_on_the_supported_version():
    assert version("sglang") == compat.SUPPORTED
    assert compat.missing() == []
    compat.check()


@pytest.mark.parametrize(
    ("owner", "name"),
    [
        (UnifiedTreeCore, "_split_node"),
        (UnifiedRadixCache, "checkpoint_into_tree"),
        (Scheduler, "_add_request_to_queue"),
    ],
)
def test_check_names_what_is_missing_and_the_version(monkeypatch, owner, name):
    monkeypatch.delattr(owner, name)
    with pytest.raises(compat.IncompatibleSGLang) as caught:
        compat.check()
    assert f"{owner.__name__}.{name} is missing" in caught.value.what
    assert version("sglang") in caught.value.why
    assert compat.SUPPORTED in caught.value.hint


def test_check_names_parameters_that_are_no_longer_taken(monkeypatch):
    def drive_host_eviction(self, tokens, tracker): ...

    monkeypatch.setattr(FullComponent, "drive_host_eviction", drive_host_eviction)
    with pytest.raises(compat.IncompatibleSGLang) as caught:
        compat.check()
    lost = "num_tokens, device_frees, host_frees, cache_actions"
    assert f"FullComponent.drive_host_eviction no longer takes {lost}" in caught.value.what


def test_check_names_fields_that_are_gone(monkeypatch):
    monkeypatch.delitem(CacheInitParams.__dataclass_fields__, "tree_core_backend")
    with pytest.raises(compat.IncompatibleSGLang, match=r"CacheInitParams has no field tree_core"):
        compat.check()


def test_check_names_all_that_does_not_fit_at_once(monkeypatch):
    monkeypatch.delattr(UnifiedTreeCore, "_split_node")
    monkeypatch.delattr(UnifiedTreeCore, "_evict_host_leaf")
    assert len(compat.missing()) == 2


def test_check_names_a_module_that_is_gone():
    gone = compat.Name("sglang.srt.nowhere:Thing.method", ("x",))
    assert compat.missing((gone,)) == ["sglang.srt.nowhere:Thing.method is missing"]


def test_check_only_logs_when_told_to_warn(monkeypatch, caplog):
    monkeypatch.delattr(UnifiedTreeCore, "_split_node")
    monkeypatch.setenv("KVFLOW_COMPAT", "warn")
    with caplog.at_level(logging.WARNING, logger="kvflow"):
        compat.check()
    assert "UnifiedTreeCore._split_node is missing" in caplog.text


def test_cache_is_not_built_on_what_does_not_fit(monkeypatch):
    monkeypatch.delattr(UnifiedTreeCore, "_add_new_node")
    with pytest.raises(compat.IncompatibleSGLang):
        build()


@pytest.mark.parametrize("ours", [KvflowRadixCache, KvflowTreeCore, KvflowFullComponent])
def test_table_has_every_method_that_kvflow_overrides(ours):
    stock = ours.__base__
    overridden = {
        name
        for name, method in vars(ours).items()
        if inspect.isfunction(method) and hasattr(stock, name) and not name.startswith("__")
    }
    checked = {name.path.rpartition(".")[2] for name in compat.NAMES}
    assert overridden - checked == set()
