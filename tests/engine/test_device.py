"""Which device is taken, and why no graphics card."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from paretone import computing, device, own_process
from paretone.computing import cuda_command, cuda_of_torch, graphics_card
from paretone.errors import DeviceError
from paretone.measure.machine import usable_cores


def test_what_is_there_is_taken_and_the_rest_is_refused() -> None:
    assert device.choose().type == device.available()[0]
    assert device.title("cpu").startswith(f"CPU: {usable_cores()} core")
    with pytest.raises(DeviceError, match="no device named 'tpu'; choose one of auto, cuda, mps, cpu"):
        device.choose("tpu")
    missing = {"cuda", "mps"} - set(device.available())
    assert missing, "no machine has both"
    for name in missing:
        with pytest.raises(DeviceError, match=f"no device '{name}', which needs .*; choose auto or cpu"):
            device.choose(name)


MOST = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()


@pytest.mark.parametrize(("wanted", "count"), [("", None), ("1", 1), ("many", None), ("9" * 5000, MOST)])
def test_threads_can_be_set(monkeypatch: pytest.MonkeyPatch, wanted: str, count: int | None) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", wanted)
    assert device.thread_count() == (count or max(1, usable_cores() - 1))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA graphics card")
def test_cuda() -> None:
    assert device.available()[0] == "cuda"
    assert device.title("cuda") == torch.cuda.get_device_name()
    device.synchronise("cuda")


def test_freed_memory_is_kept_where_the_c_library_can(monkeypatch: pytest.MonkeyPatch) -> None:
    options = {}
    library = SimpleNamespace(mallopt=lambda option, value: options.update({option: value}))
    monkeypatch.setattr(own_process.ctypes, "CDLL", lambda name: library)
    monkeypatch.setattr(own_process.sys, "platform", "linux")
    own_process.keep_freed_memory()
    assert options == {-1: 256 << 20, -3: 32 << 20}
    monkeypatch.setattr(own_process.ctypes, "CDLL", lambda name: SimpleNamespace())
    own_process.keep_freed_memory()
    monkeypatch.setattr(own_process.sys, "platform", "win32")
    monkeypatch.setattr(own_process.ctypes, "CDLL", lambda name: pytest.fail("asked the C library"))
    own_process.keep_freed_memory()


def test_the_installed_torch_is_described_without_importing_it() -> None:
    assert cuda_of_torch() == (torch.version.cuda or "")
    assert computing.version_of("torch") == torch.__version__


def test_a_card_is_seen_on_the_bus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without its driver there is no program to ask."""
    monkeypatch.setattr(computing, "output", lambda *command: "")
    monkeypatch.setattr(computing, "_PCI", tmp_path)
    for name, vendor, kind in (("a", "0x8086", "0x030000"), ("b", "0x10de", "0x040300")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "vendor").write_text(f"{vendor}\n")
        (tmp_path / name / "class").write_text(f"{kind}\n")
    assert graphics_card() == "", "one of another maker, and a sound device"
    (tmp_path / "b" / "class").write_text("0x030200\n")
    assert graphics_card() == "the NVIDIA card"
    monkeypatch.setattr(computing, "output", lambda *command: "NVIDIA H100\nNVIDIA H100\n")
    assert graphics_card() == "NVIDIA H100"


def test_what_to_do_suits_the_installation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setattr(sys, "platform", "linux")
    assert cuda_command().startswith(f"run pip install --force-reinstall torch=={torch.__version__.partition('+')[0]},")
    (tmp_path / "uv-receipt.toml").touch()
    assert "uv tool install --reinstall --torch-backend auto 'paretone[app]'" in cuda_command()
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    assert "instead of the packaged program" in cuda_command()
