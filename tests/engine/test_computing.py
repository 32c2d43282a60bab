"""What computes here, and why no graphics card."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch

from paretone import computing
from paretone.computing import Computing, cuda_command, cuda_of_torch, graphics_card


def test_the_installed_torch_is_described_without_importing_it() -> None:
    assert cuda_of_torch() == (torch.version.cuda or "")
    assert computing.torch_version() == torch.__version__


def test_the_line_says_everything_but_the_advice() -> None:
    found = Computing("2.13.0+cpu", "CPU, 2 threads", "this is PyTorch's build for processors", "Do this.")
    assert found.line == "torch 2.13.0+cpu · CPU, 2 threads · no GPU: this is PyTorch's build for processors"
    used = computing.computing(("cuda", "cpu"), "NVIDIA H200")
    assert used.line == f"torch {torch.__version__} · NVIDIA H200"
    assert (used.lacking, used.advice, used.idle) == ("", "", "")


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
