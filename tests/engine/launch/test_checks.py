import os
import socket
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import psutil
import pytest
from support import fake_sglang
from support.launches import fake_launch, free_port

from kvflow.engine import compat
from kvflow.engine.cpu import demo_model
from kvflow.engine.launch import before_start
from kvflow.engine.processes import start_ticks
from kvflow.engine.state import ServerState, announced
from kvflow.errors import KvflowError, MissingPart, UsageError

NO_GPU = {"CUDA_VISIBLE_DEVICES": ""}


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of its own and an SGLang of the right version."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.syspath_prepend(fake_sglang.install(tmp_path / "site"))
    return tmp_path


@pytest.fixture
def listener() -> Iterator[int]:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        yield int(server.getsockname()[1])


def test_before_start_with_everything_in_place_finds_nothing() -> None:
    before_start(fake_launch(free_port()), NO_GPU)


def test_before_start_without_sglang_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", missing)

    with pytest.raises(MissingPart, match="SGLang is not installed") as caught:
        before_start(fake_launch(free_port()), NO_GPU)
    assert caught.value.hint == "pip install 'kvflow[engine]'"


def test_before_start_with_another_sglang_names_both_versions(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(fake_sglang.install(home / "old", "0.4.9"))

    with pytest.raises(MissingPart) as caught:
        before_start(fake_launch(free_port()), NO_GPU)
    assert "0.4.9" in caught.value.what
    assert "0.5.23" in caught.value.why
    assert "KVFLOW_COMPAT=warn" in caught.value.hint


def test_before_start_with_another_sglang_only_warns_where_it_is_told_to(
    home: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.syspath_prepend(fake_sglang.install(home / "new", "0.6.0"))

    before_start(fake_launch(free_port()), {**NO_GPU, "KVFLOW_COMPAT": "warn"})

    [record] = caplog.records
    assert "SGLang 0.6.0 is installed" in record.getMessage()
    assert "0.5.23" in record.getMessage()


def test_sglang_version_is_the_one_of_the_engine_extra() -> None:
    wanted = [line for line in metadata.requires("kvflow") or () if line.startswith("sglang")]

    assert [line.partition(";")[0].strip() for line in wanted] == [f"sglang=={compat.SUPPORTED}"]


@pytest.mark.parametrize(
    ("selected", "ours"), [("npu", "kvflow_cpu"), ("npu", ""), ("kvflow_cpu", "")]
)
def test_before_start_with_another_platform_selected_says_which(selected: str, ours: str) -> None:
    launch = fake_launch(free_port(), env={"SGLANG_PLATFORM": ours} if ours else {})

    with pytest.raises(UsageError, match=f"SGLANG_PLATFORM is set to {selected}"):
        before_start(launch, {**NO_GPU, "SGLANG_PLATFORM": selected})


def test_before_start_with_our_platform_selected_is_fine() -> None:
    launch = fake_launch(free_port(), env={"SGLANG_PLATFORM": "kvflow_cpu"})

    before_start(launch, {**NO_GPU, "SGLANG_PLATFORM": "kvflow_cpu"})


def test_before_start_on_cuda_without_a_gpu_proposes_the_cpu() -> None:
    with pytest.raises(MissingPart, match="no NVIDIA GPU") as caught:
        before_start(fake_launch(free_port(), device="cuda"), NO_GPU)
    assert "--device cpu" in caught.value.hint


@pytest.mark.parametrize("model", ["/no/such/model", "./no-such-model", "~/no-such-model"])
def test_before_start_with_a_path_to_no_model_says_so(model: str) -> None:
    with pytest.raises(UsageError, match=f"there is no model {model}"):
        before_start(fake_launch(free_port(), model=model), NO_GPU)


def test_before_start_built_in_model_need_not_be_there_yet() -> None:
    before_start(fake_launch(free_port(), model=str(demo_model.folder())), NO_GPU)


def test_before_start_port_in_use_names_the_process(listener: int) -> None:
    with pytest.raises(KvflowError) as caught:
        before_start(fake_launch(listener), NO_GPU)

    assert caught.value.what == f"port {listener} is in use"
    assert f"{psutil.Process().name()} (pid {os.getpid()})" in caught.value.why
    assert f"--port {listener + 1}" in caught.value.hint


def test_before_start_port_of_another_kvflow_proposes_to_use_it(listener: int) -> None:
    server = ServerState(
        url=f"http://127.0.0.1:{listener}",
        pid=os.getpid(),
        created=psutil.Process().create_time(),
        started_at=0.0,
        device="cpu",
        mode="off",
        model="m",
        recipe="/flows/peer.yaml",
        start_ticks=start_ticks(os.getpid()),
    )

    with announced(server), pytest.raises(KvflowError) as caught:
        before_start(fake_launch(listener), NO_GPU)

    assert "kvflow serves /flows/peer.yaml" in caught.value.why
    assert f"use it at {server.url}" in caught.value.hint


def test_before_start_address_of_no_interface_here_is_refused() -> None:
    with pytest.raises(UsageError, match=r"cannot bind to 192\.0\.2\.1"):
        before_start(fake_launch(free_port(), host="192.0.2.1"), NO_GPU)
