"""The doctor says what is there, what is not, and what to do."""

import json
import os
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from paretone import computing, device, doctor, extras, own_process
from paretone.computing import cuda_command, cuda_of_torch, graphics_card
from paretone.doctor import GOOD, NOTE, PROBLEM, Check, as_text, examine, private, shareable
from paretone.errors import DeviceError
from paretone.measure.machine import usable_cores
from tests.engine.command_line import Console


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's data folder, and commands of the system that say nothing."""
    folder = tmp_path / "someone" / "data"
    monkeypatch.setenv("PARETONE_DATA", str(folder))
    return folder


def found(name: str, devices: tuple[str, ...] = ("cpu",)) -> Check:
    return next(one for one in examine(devices) if one.name == name)


def test_this_installation_is_described(data: Path) -> None:
    checks = {one.name: one for one in examine(("cpu",))}
    assert checks["Paretone"].state == checks["Python"].state == checks["PyTorch"].state == GOOD
    assert "models run on cpu" in checks["PyTorch"].found
    assert checks["Bundled models"].found == "F5 mini, MegaTTS 3 mini, LM mini, Omni mini"
    assert str(data) in checks["Data folder"].found and "GiB free" in checks["Data folder"].found
    assert all(one.advice for one in checks.values() if one.state != GOOD)


def test_a_card_that_is_not_used_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(computing, "graphics_card", lambda: "NVIDIA H100")
    monkeypatch.setattr(computing, "cuda_of_torch", lambda: "")
    card = found("Graphics card")
    assert card.state == PROBLEM and "build for processors" in card.found
    assert "--force-reinstall torch==" in card.advice
    monkeypatch.setattr(computing, "cuda_of_torch", lambda: "13.0")
    assert "PyTorch cannot use NVIDIA H100" in found("Graphics card").found
    assert not [one for one in examine(("cuda", "cpu")) if one.name == "Graphics card"], "it is used"
    monkeypatch.setattr(computing, "graphics_card", lambda: "")
    none = found("Graphics card")
    assert (none.state, none.found, none.advice) == (GOOD, "none is used: no NVIDIA card was found", "")
    monkeypatch.setattr(doctor, "version_of", lambda package: "")
    assert found("PyTorch").state == PROBLEM


def test_the_packaged_program_says_what_it_is_and_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    monkeypatch.setattr(computing, "graphics_card", lambda: "NVIDIA H100")
    monkeypatch.setattr(extras, "find_spec", lambda name: None)
    assert "the packaged program" in found("Paretone").found
    assert "the packaged program" in found("Graphics card").found
    assert "uv tool install" in found("Graphics card").advice
    advice = found("LLaSA: its texts and its voices").advice
    assert "cannot add it" in advice and "'llasa'" in advice and "pip install" not in advice


def test_folders_without_room_or_that_cannot_be_written(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data.parent.mkdir(parents=True)
    monkeypatch.setattr(doctor.shutil, "disk_usage", lambda place: type("Usage", (), {"free": 10 * 2**20}))
    assert found("Data folder").state == PROBLEM and "Make room" in found("Data folder").advice
    monkeypatch.setattr(doctor.shutil, "disk_usage", lambda place: type("Usage", (), {"free": 2**30}))
    assert found("Data folder").state == NOTE
    monkeypatch.setattr(doctor.os, "access", lambda place, mode: False)
    assert "cannot be written" in found("Data folder").found and "PARETONE_DATA" in found("Data folder").advice
    monkeypatch.undo()
    monkeypatch.setenv("PARETONE_DATA", str(data))
    data.write_text("a file")
    assert "is a file" in found("Data folder").found
    data.unlink()
    (data / "takes").mkdir(parents=True)
    (data / "takes" / "audio").symlink_to(data)
    assert "symbolic link" in found("Take library").found


def test_a_report_names_no_private_folder(data: Path) -> None:
    checks = (
        Check("Data folder", GOOD, f"{data}/takes, 3 GiB free"),
        Check("Sound", PROBLEM, f"{Path.home()}/.asoundrc"),
    )
    told = as_text(shareable(checks))
    assert told.splitlines()[:2] == ["✓ Data folder: DATA/takes, 3 GiB free", "✗ Sound: ~/.asoundrc"]
    assert "One problem was found (✗)." in told and str(data) not in told
    assert private("nothing of anybody's") == "nothing of anybody's"


def test_the_command(data: Path, console: Console) -> None:
    told = console.data("doctor", "--json", "--share")
    assert {one["state"] for one in told["checks"]} <= {GOOD, NOTE, PROBLEM}
    assert told["problems"] == sum(one["state"] == PROBLEM for one in told["checks"])
    assert str(data) not in json.dumps(told)
    assert str(data) in console.out("doctor")


# --- Devices ----------------------------------------------------------------------------------------------------------
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
    monkeypatch.setattr(computing, "PCI_DEVICES", tmp_path)
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
