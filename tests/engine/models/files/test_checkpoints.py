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
from torch import Tensor, nn

from paretone.errors import Cancelled, CheckpointError
from paretone.models import load_model
from paretone.models.files.checkpoints import fingerprint, load_strictly, read_checkpoint, read_weights, require_numbers
from paretone.paths import resource
from tests.workload import crossed

WEIGHTS = {"weight": torch.arange(6.0).reshape(2, 3), "bias": torch.ones(2)}


class RunsCode:
    """Unpickling an instance without protection would create the file ``path``."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple:
        return os.mkdir, (str(self.path),)


def saved(path: Path, content: object = WEIGHTS, **options: object) -> Path:
    save_file(content, path) if path.suffix == ".safetensors" else torch.save(content, path, **options)
    return path


@pytest.mark.parametrize("name", ["a.safetensors", "a.pt", "a.bin"])
def test_reads_every_format(tmp_path: Path, name: str) -> None:
    weights = read_weights(saved(tmp_path / name))
    assert weights.keys() == WEIGHTS.keys()
    assert all(torch.equal(weights[key], WEIGHTS[key]) for key in WEIGHTS)


def test_reads_the_old_torch_format(tmp_path: Path) -> None:
    path = saved(tmp_path / "a.pt", _use_new_zipfile_serialization=False)
    assert torch.equal(read_weights(path)["weight"], WEIGHTS["weight"])


@pytest.mark.parametrize("zipped", [True, False])
def test_a_file_with_code_is_refused_and_the_code_does_not_run(tmp_path: Path, zipped: bool) -> None:
    content = {"weight": RunsCode(tmp_path / "ran")}
    path = saved(tmp_path / "a.pt", content, _use_new_zipfile_serialization=zipped)
    with pytest.raises(CheckpointError, match=r"a\.pt was refused: it holds code \(\S+mkdir\)"):
        read_checkpoint(path)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("name", ["a.safetensors", "a.pt", "old.pt"])
@pytest.mark.parametrize("share", [0.0, 0.3])
def test_a_truncated_file_says_so(tmp_path: Path, name: str, share: float) -> None:
    weights = {"weight": torch.zeros(5000)}
    options = {} if name == "a.safetensors" else {"_use_new_zipfile_serialization": name != "old.pt"}
    path = saved(tmp_path / name, weights, **options)
    path.write_bytes(path.read_bytes()[: int(share * path.stat().st_size)])
    with pytest.raises(CheckpointError, match=f"{name}.*download it again"):
        read_checkpoint(path)


@pytest.mark.parametrize("name", ["a.safetensors", "a.pt"])
@pytest.mark.parametrize("content", [b"<html>404 not found</html>" * 20, b"PK\x03\x04" + b"x" * 400])
def test_what_is_no_checkpoint_is_refused(tmp_path: Path, name: str, content: bytes) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match=name):
        read_checkpoint(path)


def test_a_missing_file_and_another_kind_of_file_are_named(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"nothing\.pt is missing"):
        read_checkpoint(tmp_path / "nothing.pt")
    (tmp_path / "a.wav").write_bytes(b"RIFF")
    with pytest.raises(CheckpointError, match=r"a\.wav is not a checkpoint"):
        read_checkpoint(tmp_path / "a.wav")


def test_nested_content_and_a_single_tensor_are_no_weights(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="optimiser is not a tensor"):
        read_weights(saved(tmp_path / "a.pt", {"optimiser": {}}))
    with pytest.raises(CheckpointError, match="holds a Tensor"):
        read_weights(saved(tmp_path / "b.pt", torch.zeros(3)))


def test_strict_loading_names_every_kind_of_fault() -> None:
    module = nn.Linear(3, 2)
    load_strictly(module, WEIGHTS, "a.pt")
    assert torch.equal(module.weight, WEIGHTS["weight"])
    with pytest.raises(CheckpointError, match=r"a\.pt .*1 weight missing: bias"):
        load_strictly(module, {"weight": WEIGHTS["weight"]}, "a.pt")
    with pytest.raises(CheckpointError, match=r"1 weight unexpected: extra"):
        load_strictly(module, WEIGHTS | {"extra": torch.zeros(1)}, "a.pt")
    with pytest.raises(CheckpointError, match=r"1 weight of another shape: bias is 3 instead of 2"):
        load_strictly(module, WEIGHTS | {"bias": torch.zeros(3)}, "a.pt")
    with pytest.raises(CheckpointError, match=r"not numbers in bias"):
        load_strictly(module, WEIGHTS | {"bias": torch.tensor([1.0, float("nan")])}, "a.pt")
    with pytest.raises(CheckpointError, match=r"not numbers in bias"):
        load_strictly(module, WEIGHTS | {"bias": torch.tensor([float("inf"), -float("inf")])}, "a.pt")


def test_values_whose_sum_is_too_large_are_numbers() -> None:
    require_numbers({"half": torch.full((9,), 6e4, dtype=torch.float16)}, "a.pt")


def test_fingerprint_is_the_sha256_and_follows_changes(tmp_path: Path) -> None:
    path = tmp_path / "a.bin"
    path.write_bytes(b"abc")
    assert fingerprint(path) == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    path.write_bytes(b"abd")
    os.utime(path, ns=(1, 1))
    changed = fingerprint(path)
    assert changed != "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    with pytest.raises(CheckpointError, match=r"nothing\.pt cannot be read"):
        fingerprint(tmp_path / "nothing.pt")


def test_an_unchanged_file_is_not_read_again(tmp_path: Path) -> None:
    path = tmp_path / "a.bin"
    path.write_bytes(b"a" * 100)
    blocks = []
    fingerprint(path, lambda: blocks.append(1))
    fingerprint(path, lambda: blocks.append(1))
    assert len(blocks) == 1


@pytest.mark.parametrize("name", ["a.safetensors", "a.pt"])
def test_reading_and_fingerprinting_can_be_cancelled(tmp_path: Path, name: str) -> None:
    def cancel() -> None:
        raise Cancelled

    path = saved(tmp_path / name)
    with pytest.raises(Cancelled):
        read_checkpoint(path, cancel)
    with pytest.raises(Cancelled):
        fingerprint(path, cancel)


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


@pytest.mark.parametrize(("part", "kind"), crossed(PARTS, list(WRONG)))
def test_a_broken_tensor_is_named(models: Path, part: tuple[str, str, str], kind: str) -> None:
    model, folder, tensor = part
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


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({0: torch.ones(2)}, "under a number instead of a name"),
        ({"a": torch.eye(3).to_sparse()}, "'a' that is sparse"),
        ({"a": torch.empty(3, device="meta")}, "'a' that is without values"),
        ({"a": torch.ones(2).to(torch.float8_e5m2)}, "'a' that is of float8_e5m2 numbers"),
        ({"a": torch.ones(1).expand(10**6, 10**6)}, "'a' that is larger than what is stored"),
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
