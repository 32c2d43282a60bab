"""Weights that no training ends with, and tensors that are none: refused, with file and name."""

from __future__ import annotations

import os
import re
import shutil
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from paretone.errors import CheckpointError
from paretone.models import load_model
from paretone.models.files.checkpoints import read_checkpoint, read_weights
from paretone.paths import resource

Change = Callable[[Tensor], Tensor]
WRONG: dict[str, tuple[Change, str]] = {
    "int32": (lambda value: value.int(), "whole numbers"),
    "bool": (lambda value: value.bool(), "truth values"),
    "zeros": (torch.zeros_like, "only zeros"),
    "huge": (lambda value: torch.full(value.shape, 3e38), "absurdly large values"),
    "one huge": (lambda value: value.float().index_fill(-1, torch.tensor([0]), 3e38), "absurdly large values"),
    "nan": (lambda value: torch.full_like(value, float("nan")), "not numbers"),
    "infinite": (lambda value: torch.full_like(value, float("-inf")), "not numbers"),
    "float8": (lambda value: value.to(torch.float8_e4m3fn), "float8_e4m3fn numbers"),
    "complex": (lambda value: value.to(torch.complex64), "complex64 numbers|damaged"),
}
PARTS = [
    ("f5-mini", "f5-mini", "transformer_blocks.3.attn.to_q.weight"),
    ("f5-mini", "natural-vocoder", "backbone.embed.weight"),
    ("lm-mini", "lm-mini", "model.embed_tokens.weight"),
    ("lm-mini", "lm-mini", "lm_head.weight"),
    ("lm-mini", "lm-mini", "layers.2.mlp.up_proj.weight"),
    ("lm-mini", "lm-mini/tokenizer", "encoder.enter.weight"),
    ("omni-mini", "omni-mini", "audio_heads.weight"),
    ("omni-mini", "omni-mini/codec", "quantiser.codebooks"),
    ("megatts3-mini", "megatts3-mini/diffusion_transformer", "encoder.layers.1.attention.wq.weight"),
]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copies of the bundled models and their vocoder, to be damaged and mended."""
    root = tmp_path_factory.mktemp("models")
    omitted = shutil.ignore_patterns("*.jsonl", "drafts", "students", "cfg_free", "intervals")
    for name in ("f5-mini", "lm-mini", "omni-mini", "megatts3-mini", "natural-vocoder"):
        shutil.copytree(resource("models", name), root / name, ignore=omitted)
    return root


@pytest.mark.parametrize("kind", WRONG)
@pytest.mark.parametrize(("model", "folder", "tensor"), PARTS)
def test_a_broken_tensor_is_named(models: Path, model: str, folder: str, tensor: str, kind: str) -> None:
    path = models / folder / "model.safetensors"
    own, weights = path.read_bytes(), load_file(path)
    name = next(one for one in weights if one.endswith(tensor))
    change, what = WRONG[kind]
    try:
        save_file(weights | {name: change(weights[name]).contiguous()}, path)
        with pytest.raises(CheckpointError, match=what) as caught:
            load_model(model, folder=str(models / model), device="cpu")
    finally:
        path.write_bytes(own)
    assert str(path) in str(caught.value)
    if kind != "complex":
        assert tensor.split(".")[-2] in str(caught.value)


def saved(path: Path, content: object) -> Path:
    torch.save(content, path)
    return path


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({0: torch.ones(2)}, "under a number instead of a name"),
        ({"a": torch.eye(3).to_sparse()}, "'a' that is sparse"),
        ({"a": torch.empty(3, device="meta")}, "'a' that is without values"),
        ({"a": torch.ones(2).to(torch.float8_e5m2)}, "'a' that is of float8_e5m2 numbers"),
        ({"a": torch.ones(1).expand(10**6, 10**6)}, "'a' that is larger than what is stored"),
        ({"a": torch.quantize_per_tensor(torch.ones(4), 0.1, 0, torch.qint8)}, "'a' that is sparse or quantised"),
        ({"a" * 10**5: torch.eye(3).to_sparse()}, "sparse"),
    ],
)
def test_tensors_that_hold_no_plain_numbers_are_refused(tmp_path: Path, content: dict, message: str) -> None:
    path = saved(tmp_path / "a.pt", content)
    with pytest.raises(CheckpointError, match=message) as caught:
        read_weights(path)
    assert str(path) in str(caught.value)
    assert len(str(caught.value)) < 500 + len(str(path))


def test_a_zip_that_would_fill_memory_is_refused_before_it_unpacks(tmp_path: Path) -> None:
    whole = saved(tmp_path / "whole.pt", {"a": torch.zeros(1 << 24)})
    bomb = tmp_path / "bomb.pt"
    with zipfile.ZipFile(whole) as source, zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as packed:
        for one in source.infolist():
            packed.writestr(one.filename, source.read(one))
    assert bomb.stat().st_size < 1 << 18
    with pytest.raises(CheckpointError, match=r"bomb.pt was refused: its [\d,]+ bytes would unpack to 67,\d+,\d+"):
        read_checkpoint(bomb)
    assert read_weights(whole)["a"].shape == (1 << 24,)


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such files")
@pytest.mark.parametrize("suffix", [".pt", ".safetensors"])
def test_a_pipe_or_a_device_is_not_waited_for(tmp_path: Path, suffix: str) -> None:
    pipe, device = tmp_path / f"pipe{suffix}", tmp_path / f"device{suffix}"
    os.mkfifo(pipe)
    device.symlink_to("/dev/zero")
    for path, kind in ((pipe, "a pipe"), (device, "a device")):
        with pytest.raises(CheckpointError, match=f"{re.escape(str(path))} cannot be read: it is {kind}"):
            read_checkpoint(path)


def test_a_header_that_promises_more_than_there_is_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    header = b'{"a":{"dtype":"F32","shape":[1000000000,1000000000],"data_offsets":[0,4000000000000000000]}}'
    path.write_bytes(struct.pack("<Q", len(header)) + header)
    with pytest.raises(CheckpointError, match="damaged or not complete"):
        read_checkpoint(path)
