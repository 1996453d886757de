from pathlib import Path

import pytest

from kvflow.engine.launch import device


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without driver or tools; a test adds what it needs."""
    monkeypatch.setattr(device, "_DRIVER", tmp_path / "gpus")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    (tmp_path / "bin").mkdir()
    return tmp_path


def add_nvidia_smi(machine: Path, script: str) -> None:
    tool = machine / "bin" / "nvidia-smi"
    tool.write_text(f"#!/bin/sh\n{script}\n")
    tool.chmod(0o755)


def test_choose_auto_without_gpu_is_cpu(machine: Path) -> None:
    assert device.choose("auto", {}) == "cpu"


def test_choose_auto_with_driver_is_cuda(machine: Path) -> None:
    (machine / "gpus" / "0000:01:00.0").mkdir(parents=True)

    assert device.choose("auto", {}) == "cuda"


def test_choose_explicit_is_taken_at_its_word(machine: Path) -> None:
    assert device.choose("cuda", {}) == "cuda"


@pytest.mark.parametrize("hidden", ["", "-1"])
def test_gpu_visible_hidden_by_the_environment_is_not(machine: Path, hidden: str) -> None:
    (machine / "gpus" / "0000:01:00.0").mkdir(parents=True)

    assert not device.gpu_visible({"CUDA_VISIBLE_DEVICES": hidden})
    assert device.gpu_visible({"CUDA_VISIBLE_DEVICES": "1"})


def test_gpu_visible_driver_without_cards_is_not(machine: Path) -> None:
    (machine / "gpus").mkdir()

    assert not device.gpu_visible({})


def test_gpu_visible_only_nvidia_smi_knows_of_one_is(machine: Path) -> None:
    add_nvidia_smi(machine, "echo 'GPU 0: NVIDIA H200 (UUID: GPU-1)'")

    assert device.gpu_visible({})


def test_gpu_visible_nvidia_smi_fails_is_not(machine: Path) -> None:
    add_nvidia_smi(machine, "echo 'GPU 0 is lost'; exit 9")

    assert not device.gpu_visible({})
