"""Checkpoints, descriptions and pointers: whatever is wrong in one is a sentence with the file."""

import itertools
import json
import os
import re
import shutil
import struct
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from paretone.errors import Cancelled, CheckpointError
from paretone.models import load_model
from paretone.models.catalogue import entry
from paretone.models.f5.checkpoint import read_f5_checkpoint
from paretone.models.files.checkpoints import fingerprint, load_strictly, read_checkpoint, read_weights, require_numbers
from paretone.models.files.config_file import ConfigFile
from paretone.models.minis.lm_mini import LmMiniFolder
from paretone.models.minis.omni_mini import OmniMiniFolder
from paretone.models.networks.causal import CausalConfig
from paretone.models.networks.masked_network import MaskedConfig
from paretone.models.networks.vocos import VocosConfig
from paretone.models.omnivoice.higgs import HiggsConfig
from paretone.paths import resource
from tests.engine.models.cosyvoice2 import small_release as cosyvoice2
from tests.engine.models.llasa import small_release as llasa
from tests.engine.models.megatts3 import small_release as megatts3
from tests.engine.models.omnivoice import small_release as omnivoice
from tests.engine.recorder import Follower
from tests.engine.test_reading import ALIASES
from tests.workload import crossed, workload

POINTER = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'ab' * 32}\nsize 1348428256\n"

NOT_READ = {"tokenizer_config.json", "generation_config.json", "config.json"}
"""Files without which a model loads: what the writers of tokenizers add, and XCodec2's, which reads recordings."""


RELEASES: dict[str, tuple[Callable[[Path], object], str]] = {
    "CosyVoice2-0.5B": (cosyvoice2.write_release, "onnxruntime"),
    "Llasa-1B": (lambda root: llasa.write_release(root.parent, shards=2), "tokenizers"),
    "OmniVoice": (omnivoice.write_release, "tokenizers"),
    "MegaTTS3": (megatts3.write_release, "transformers"),
}


@pytest.mark.parametrize("model", ["f5-mini", "omni-mini", "megatts3-mini"])
def test_a_folder_that_has_only_the_weights_pointer(tmp_path: Path, model: str) -> None:
    """Whatever else is missing there."""
    path = tmp_path / entry(model).weights / "model.safetensors"
    path.parent.mkdir(exist_ok=True)
    path.write_text(POINTER)
    with pytest.raises(CheckpointError, match=r"model\.safetensors .*is a Git LFS pointer, .*; run 'git lfs pull'"):
        load_model(model, folder=str(tmp_path), device="cpu")


@pytest.mark.parametrize("model", workload(tuple(RELEASES), ("Llasa-1B", "OmniVoice")))
def test_every_file_of_a_release(tmp_path: Path, model: str) -> None:
    write, package = RELEASES[model]
    pytest.importorskip(package)
    root = tmp_path / model
    write(root)
    files = [path for path in sorted(tmp_path.rglob("*")) if path.is_file()]
    unnamed = []
    for path in files:
        own = path.read_bytes()
        path.write_text(POINTER)
        said = sentence_of(lambda: load_model(model, folder=str(root), device="cpu"))
        path.write_bytes(own)
        wanted = () if path.name in NOT_READ and not said else ("Git LFS pointer", "run 'git lfs pull'", path.name)
        if not all(word in said for word in wanted):
            unnamed.append((str(path.relative_to(tmp_path)), said))
    assert len(files) > 3
    assert not unnamed, "\n".join(map(str, unnamed))


NO_LEAF: tuple[Any, ...] = workload(([], {}, [None], {"a": []}, -1, 1e308, 10**30, True), ({"a": []}, 1e308))
NO_PART: tuple[Any, ...] = workload(([], [None], "x", -1, 1e308, True), ([None],))
DEEP = workload(100_000, 5_000)
NO_FILE = (b"null", b"[]", b"1", b'"x"', b"[" * DEEP, b'{"a":' * DEEP, b"\xff\xfe\x00", b"", b"{", b"\0")
IGNORED = ("class_path",)


def spoilt(entries: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """``entries`` with each of its fields, and each of those within, replaced by what it cannot be; and its name."""
    for name, own in entries.items():
        if name in IGNORED:
            continue
        for value in NO_PART if isinstance(own, dict) else NO_LEAF[: 7 if isinstance(own, bool) else None]:
            yield name, {**entries, name: value}
        if isinstance(own, dict):
            for inner, changed in spoilt(own):
                yield inner, {**entries, name: changed}


UNREAD = {
    *("architectures", "max_position_embeddings", "torch_dtype", "bos_token_id", "eos_token_id", "voices", "everybody"),
    *("text_ids", "positions", "audio_codebook_weights", "tie_word_embeddings", "vocab_size"),
}
"""Fields for other programs."""
LLAMA, OMNIVOICE = (
    {name: value for name, value in one.items() if name not in UNREAD} for one in (llasa.CONFIG, omnivoice.CONFIG)
)
VOCOS = {
    "feature_extractor": {"class_path": "x", "init_args": {"sample_rate": 24000}},
    "backbone": {"init_args": {"input_channels": 100, "dim": 16, "intermediate_dim": 16, "num_layers": 1}},
    "head": {"init_args": {"n_fft": 64, "hop_length": 16, "padding": "center"}},
}
HIGGS = {
    **{"sample_rate": 24000, "semantic_sample_rate": 16000, "codebook_size": 64, "codebook_dim": 8},
    **{"target_bandwidths": [0.5, 2.0], "kernel_size": 3, "unit_kernel_size": 3},
    **{name: [1, 1] for name in ("strides", "channel_ratios", "block_dilations")},
    "acoustic_model_config": {
        **{name: [8, 5] for name in ("upsampling_ratios", "downsampling_ratios")},
        **dict.fromkeys(("hidden_size", "decoder_hidden_size", "encoder_hidden_size"), 16),
    },
    "semantic_model_config": {"hidden_size": 16},
}


@pytest.mark.parametrize(
    ("read", "entries", "suffix"),
    [
        (lambda path: CausalConfig.read(ConfigFile.read(path)), LLAMA, ".json"),
        (lambda path: MaskedConfig.read(ConfigFile.read(path)), OMNIVOICE, ".json"),
        (lambda path: HiggsConfig.read(ConfigFile.read(path)), HIGGS, ".json"),
        (VocosConfig.read, VOCOS, ".yaml"),
    ],
)
def test_each_field_of_a_description_is_checked(tmp_path: Path, read: Any, entries: dict, suffix: str) -> None:
    path = tmp_path / f"config{suffix}"
    path.write_text(json.dumps(entries))
    read(path)
    for name, changed in spoilt(entries):
        path.write_text(json.dumps(changed))
        with pytest.raises(CheckpointError) as caught:
            read(path)
        sentence = str(caught.value)
        assert name in sentence
        assert str(path) in sentence
        assert len(sentence) < 400 + len(str(path))


@pytest.mark.parametrize("name", ["config.json", "config.yaml"])
@pytest.mark.parametrize("content", NO_FILE, ids=lambda content: repr(content[:9]))
def test_what_is_no_description_is_named(tmp_path: Path, name: str, content: bytes) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match=re.escape(str(path))) as caught:
        ConfigFile.read(path)
    assert len(str(caught.value)) < 400 + len(str(path))


def spoilt_folders(tmp_path: Path, model: str) -> Iterator[tuple[str, str, Path]]:
    """A bundled model with one field of a description spoilt: the name of the file, that of the field, and the copy."""
    root = copied(tmp_path, model)
    for path in sorted(set(root.rglob("*.json")) - {root / "layers.json"}):
        content = path.read_bytes()
        fields = ((name, json.dumps(changed).encode()) for name, changed in spoilt(json.loads(content)))
        for name, other in itertools.chain(fields, (("", one) for one in NO_FILE)):
            path.write_bytes(other)
            yield path.name, name, root
        path.write_bytes(content)


@pytest.mark.parametrize(("model", "folder"), [("lm-mini", LmMiniFolder), ("omni-mini", OmniMiniFolder)])
def test_each_field_of_a_bundled_model_is_checked(tmp_path: Path, model: str, folder: Any) -> None:
    parts = ("layout", "config", "tokenizer" if model == "lm-mini" else "codec")
    for file, name, root in spoilt_folders(tmp_path, model):
        found = folder(root)
        calls = found.layout, found.config, lambda found=found: getattr(found, parts[2])(torch.device("cpu"))
        sentence = next(filter(None, map(sentence_of, calls)), "")
        assert name in UNREAD if not sentence else file in sentence and name in sentence, (file, name)
        assert len(sentence) < 400 + len(str(root))


def sentence_of(call: Callable[[], object]) -> str:
    try:
        call()
    except CheckpointError as error:
        return str(error)
    return ""


def copied(tmp_path: Path, model: str) -> Path:
    """A copy of a bundled model, without what was trained from it."""
    omitted = shutil.ignore_patterns("*.jsonl", "drafts", "students", "cfg_free", "intervals")
    return shutil.copytree(resource("models", model), tmp_path / model, ignore=omitted)


def test_a_sidecar_whose_aliases_stand_for_gigabytes_is_refused_at_once(tmp_path: Path) -> None:
    folder = copied(tmp_path, "f5-mini")
    (folder / "model.yaml").write_text(f"{ALIASES}model: {{arch: *a11}}")
    with pytest.raises(CheckpointError, match=r"model.yaml cannot be read as a configuration \(it stands for more"):
        read_f5_checkpoint(folder)


@pytest.mark.parametrize("field", ["depth: 8", "heads: 4"])
def test_sizes_are_held_against_the_weights_before_anything_is_built(tmp_path: Path, field: str) -> None:
    folder = copied(tmp_path, "f5-mini")
    sidecar = folder / "model.yaml"
    sidecar.write_text(sidecar.read_text().replace(field, f"{field.partition(':')[0]}: 1000000000"))
    with pytest.raises(CheckpointError, match=r"asks for more than its \d+ weights|does not fit this architecture"):
        read_f5_checkpoint(folder)


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


OLD = {"_use_new_zipfile_serialization": False}


@pytest.mark.parametrize(("name", "options"), [("a.safetensors", {}), ("a.pt", {}), ("a.bin", {}), ("a.pt", OLD)])
def test_reads_every_format(tmp_path: Path, name: str, options: dict[str, bool]) -> None:
    weights = read_weights(saved(tmp_path / name, **options))
    assert weights.keys() == WEIGHTS.keys()
    assert all(torch.equal(weights[key], WEIGHTS[key]) for key in WEIGHTS)


@pytest.mark.parametrize("zipped", [True, False])
def test_a_file_with_code_is_refused_and_the_code_does_not_run(tmp_path: Path, zipped: bool) -> None:
    path = saved(tmp_path / "a.pt", {"weight": RunsCode(tmp_path / "ran")}, _use_new_zipfile_serialization=zipped)
    with pytest.raises(CheckpointError, match=r"a\.pt was refused: it holds code \(\S+mkdir\)"):
        read_checkpoint(path)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("name", ["a.safetensors", "a.pt", "old.pt"])
@pytest.mark.parametrize("share", [0.0, 0.3])
def test_a_truncated_file_says_so(tmp_path: Path, name: str, share: float) -> None:
    path = saved(tmp_path / name, {"weight": torch.zeros(5000)}, **(OLD if name == "old.pt" else {}))
    path.write_bytes(path.read_bytes()[: int(share * path.stat().st_size)])
    with pytest.raises(CheckpointError, match=f"{name}.*download it again"):
        read_checkpoint(path)


NO_CHECKPOINT = b"<html>404 not found</html>" * 20, b"PK\x03\x04" + b"x" * 400
MUCH = b'{"a":{"dtype":"F32","shape":[1000000000,1000000000],"data_offsets":[0,4000000000000000000]}}'


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        *((name, content, name) for name in ("a.safetensors", "a.pt") for content in NO_CHECKPOINT),
        ("a.safetensors", struct.pack("<Q", len(MUCH)) + MUCH, "damaged or not complete"),
    ],
)
def test_what_is_no_checkpoint_is_refused(tmp_path: Path, name: str, content: bytes, said: str) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match=said):
        read_checkpoint(path)


def test_what_holds_no_weights_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.wav").write_bytes(b"RIFF")
    for path, fault in (
        (tmp_path / "nothing.pt", r"nothing\.pt is missing"),
        (tmp_path / "a.wav", r"a\.wav is not a checkpoint"),
        (saved(tmp_path / "a.pt", {"optimiser": {}}), "optimiser is not a tensor"),
        (saved(tmp_path / "b.pt", torch.zeros(3)), "holds a Tensor"),
    ):
        with pytest.raises(CheckpointError, match=fault):
            read_weights(path)


def test_strict_loading_names_every_kind_of_fault() -> None:
    module = nn.Linear(3, 2)
    load_strictly(module, WEIGHTS, "a.pt")
    assert torch.equal(module.weight, WEIGHTS["weight"])
    for weights, fault in (
        ({"weight": WEIGHTS["weight"]}, r"a\.pt .*1 weight missing: bias"),
        (WEIGHTS | {"extra": torch.zeros(1)}, "1 weight unexpected: extra"),
        (WEIGHTS | {"bias": torch.zeros(3)}, "1 weight of another shape: bias is 3 instead of 2"),
        (WEIGHTS | {"bias": torch.tensor([1.0, float("nan")])}, "not numbers in bias"),
        (WEIGHTS | {"bias": torch.tensor([float("inf"), -float("inf")])}, "not numbers in bias"),
    ):
        with pytest.raises(CheckpointError, match=fault):
            load_strictly(module, weights, "a.pt")
    require_numbers({"half": torch.full((9,), 6e4, dtype=torch.float16)}, "whose sum is too large for its type")


def test_fingerprint_is_the_sha256_and_follows_changes(tmp_path: Path) -> None:
    path, blocks = tmp_path / "a.bin", []
    path.write_bytes(b"abc")
    for _ in range(2):
        found = fingerprint(path, lambda: blocks.append(1))
        assert found == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert len(blocks) == 1, "an unchanged file is not read again"
    path.write_bytes(b"abd")
    os.utime(path, ns=(1, 1))
    assert fingerprint(path) != found
    with pytest.raises(CheckpointError, match=r"nothing\.pt cannot be read"):
        fingerprint(tmp_path / "nothing.pt")


@pytest.mark.parametrize("name", ["a.safetensors", "a.pt"])
def test_reading_and_fingerprinting_can_be_cancelled(tmp_path: Path, name: str) -> None:
    path = saved(tmp_path / name)
    with pytest.raises(Cancelled):
        read_checkpoint(path, Follower(cancel_at=1).check)
    with pytest.raises(Cancelled):
        fingerprint(path, Follower(cancel_at=1).check)


WRONG: dict[str, tuple[Callable[[Tensor], Tensor], str]] = {
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
    for name in ("f5-mini", "lm-mini", "omni-mini", "megatts3-mini", "natural-vocoder"):
        copied(root, name)
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
