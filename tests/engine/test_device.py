"""Which device is taken."""

from __future__ import annotations

import os
from types import SimpleNamespace

import pytest
import torch

from paretone import device, own_process
from paretone.errors import DeviceError
from paretone.measure.machine import usable_cores


def test_auto_takes_the_preferred_device() -> None:
    assert device.choose().type == device.available()[0]
    assert device.choose("cpu") == torch.device("cpu")


def test_missing_device_is_refused_with_what_it_needs() -> None:
    missing = {"cuda", "mps"} - set(device.available())
    assert missing, "no machine has both"
    for name in missing:
        with pytest.raises(DeviceError, match=f"no device '{name}', which needs .*; choose auto or cpu"):
            device.choose(name)


def test_unknown_device_is_refused_with_the_known_ones() -> None:
    with pytest.raises(DeviceError, match="no device named 'tpu'; choose one of auto, cuda, mps, cpu"):
        device.choose("tpu")


MOST = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()


def test_title_of_the_cpu_counts_cores() -> None:
    assert device.title("cpu").startswith(f"CPU: {usable_cores()} core")


def test_threads_leave_one_core_free(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert device.thread_count() == max(1, usable_cores() - 1)


@pytest.mark.parametrize(
    ("wanted", "count"), [("1", 1), ("0", None), ("many", None), ("9999", MOST), ("9" * 5000, MOST)]
)
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
    device.keep_freed_memory()
    assert options == {-1: 256 << 20, -3: 32 << 20}
    monkeypatch.setattr(own_process.ctypes, "CDLL", lambda name: SimpleNamespace())
    device.keep_freed_memory()
    monkeypatch.setattr(own_process.sys, "platform", "win32")
    monkeypatch.setattr(own_process.ctypes, "CDLL", lambda name: pytest.fail("asked the C library"))
    device.keep_freed_memory()
