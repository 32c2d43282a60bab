"""Descriptions of models: whatever is wrong in one is a sentence with file and field."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import torch

from paretone.errors import CheckpointError
from paretone.models.f5.checkpoint import read_f5_checkpoint
from paretone.models.files.config_file import ConfigFile
from paretone.models.minis.lm_mini import LmMiniFolder
from paretone.models.minis.omni_mini import OmniMiniFolder
from paretone.models.networks.causal import CausalConfig
from paretone.models.networks.masked_network import MaskedConfig
from paretone.models.networks.vocos import VocosConfig
from paretone.models.omnivoice.higgs import HiggsConfig
from paretone.paths import resource
from tests.engine.test_reading import ALIASES
from tests.workload import workload

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


LLAMA = {
    "model_type": "llama",
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "intermediate_size": 64,
    "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0,
    "rope_scaling": {
        "rope_type": "llama3",
        "factor": 8.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8192,
    },
}
QWEN3 = {**LLAMA, "model_type": "qwen3", "vocab_size": 100, "rope_scaling": None}
OMNIVOICE = {
    "model_type": "omnivoice",
    "audio_mask_id": 10,
    "audio_vocab_size": 11,
    "num_audio_codebook": 2,
    "llm_config": {name: value for name, value in QWEN3.items() if value is not None},
}
VOCOS = {
    "feature_extractor": {"class_path": "x", "init_args": {"sample_rate": 24000}},
    "backbone": {"init_args": {"input_channels": 100, "dim": 16, "intermediate_dim": 16, "num_layers": 1}},
    "head": {"init_args": {"n_fft": 64, "hop_length": 16, "padding": "center"}},
}
HIGGS = {
    "sample_rate": 24000,
    "codebook_size": 64,
    "codebook_dim": 8,
    "target_bandwidths": [0.5, 2.0],
    "kernel_size": 3,
    "strides": [1, 1],
    "channel_ratios": [1, 1],
    "block_dilations": [1, 1],
    "unit_kernel_size": 3,
    "semantic_sample_rate": 16000,
    "acoustic_model_config": {
        "upsampling_ratios": [8, 5],
        "downsampling_ratios": [8, 5],
        "hidden_size": 16,
        "decoder_hidden_size": 16,
        "encoder_hidden_size": 16,
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
    """A copy of a bundled model, again and again, with one field of one of its descriptions spoilt: the name of the
    file, that of the field, and the copy."""
    root = copied(tmp_path, model)
    for path in sorted(root.rglob("*.json")):
        if path.name == "layers.json":
            continue
        content = path.read_bytes()
        own = json.loads(content)
        for name, changed in spoilt(own):
            path.write_text(json.dumps(changed))
            yield path.name, name, root
        for other in NO_FILE:
            path.write_bytes(other)
            yield path.name, "", root
        path.write_bytes(content)


UNREAD = {
    *("architectures", "max_position_embeddings", "torch_dtype", "bos_token_id", "eos_token_id", "voices", "everybody"),
    *("text_ids", "positions", "audio_codebook_weights", "tie_word_embeddings", "vocab_size"),
}
"""Fields for other programs."""


@pytest.mark.parametrize(("model", "folder"), [("lm-mini", LmMiniFolder), ("omni-mini", OmniMiniFolder)])
def test_each_field_of_a_bundled_model_is_checked(tmp_path: Path, model: str, folder: Any) -> None:
    parts = ("layout", "config", "tokenizer" if model == "lm-mini" else "codec")
    for file, name, root in spoilt_folders(tmp_path, model):
        found = folder(root)
        calls = found.layout, found.config, lambda found=found: getattr(found, parts[2])(torch.device("cpu"))
        sentence = next(filter(None, map(sentence_of, calls)), "")
        if not sentence:
            assert name in UNREAD, (file, name)
        else:
            assert file in sentence
            assert name in sentence
            assert len(sentence) < 400 + len(str(root))


def sentence_of(call: Callable[[], object]) -> str:
    """The sentence that ``call`` raises, or ``""``."""
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


@pytest.mark.parametrize("field", ["num_hidden_layers", "hidden_size"])
def test_so_are_those_of_a_language_model(tmp_path: Path, field: str) -> None:
    folder = copied(tmp_path, "lm-mini")
    config = folder / "config.json"
    changed = json.loads(config.read_text()) | {"num_key_value_heads": 1, field: 2**31 - 1}
    config.write_text(json.dumps(changed))
    with pytest.raises(CheckpointError, match=r"asks for more than its \d+ weights|does not fit this architecture"):
        LmMiniFolder(folder).network(torch.device("cpu"))
