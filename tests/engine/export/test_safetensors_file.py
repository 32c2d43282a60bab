"""Weights written tensor by tensor are the library's own format."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file

from paretone.errors import Cancelled
from paretone.export.delivery import deliver
from paretone.export.exported_weights import _KINDS, safetensors_file


def test_the_library_reads_every_kind_back(tmp_path: Path) -> None:
    tensors = {str(kind): torch.arange(6).reshape(2, 3).to(kind) for kind in _KINDS}
    tensors |= {"turned": torch.randn(3, 5).T, "number": torch.tensor(3), "none": torch.zeros(0, 2), "é": torch.ones(1)}
    made = safetensors_file(tensors, {"b": "2", "a": "1"})
    deliver(tmp_path, {"w.safetensors": made}, lambda done, total: None)
    assert (tmp_path / "w.safetensors").stat().st_size == made.size
    with safe_open(tmp_path / "w.safetensors", framework="pt") as file:
        assert file.metadata() == {"a": "1", "b": "2"}
    read = load_file(tmp_path / "w.safetensors")
    assert read.keys() == tensors.keys()
    for name, value in tensors.items():
        assert read[name].dtype == value.dtype
        assert torch.equal(read[name], value)


def test_cancelling_between_tensors_leaves_nothing(tmp_path: Path) -> None:
    def stop(done: int, total: int) -> None:
        if done > 1000:
            raise Cancelled

    tensors = {name: torch.zeros(400) for name in "abc"}
    with pytest.raises(Cancelled):
        deliver(tmp_path / "out", {"w.safetensors": safetensors_file(tensors, {})}, stop)
    assert list(tmp_path.iterdir()) == []
