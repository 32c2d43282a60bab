import pickle
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
import torch
import yaml
from safetensors.torch import save_file
from torch import Tensor

from paretone.errors import CheckpointError
from paretone.models import catalogue
from paretone.models.f5 import checkpoint
from paretone.models.f5.checkpoint import (
    SeveralCheckpoints,
    VariantUnknown,
    expected_shapes,
    find_checkpoint,
    read_f5_checkpoint,
)
from paretone.models.f5.config import VARIANTS, BackboneConfig
from tests.engine.models.official import refused
from tests.workload import crossed

TINY = BackboneConfig("DiT", 64, 2, 1, text_dim=32, conv_layers=1, text_mask_padding=True, text_num_embeds=10)
TINY_E2 = BackboneConfig("UNetT", 64, 2, 1, ff_mult=4, pe_attn_head=1, text_num_embeds=10)
ARCHITECTURE = {"dim": 64, "depth": 2, "heads": 1, "ff_mult": 2, "text_dim": 32, "conv_layers": 1}
SIDECAR = {
    "name": "tiny",
    "backbone": "DiT",
    "tokenizer": "char",
    "arch": ARCHITECTURE | {"text_mask_padding": True, "pe_attn_head": None},
    "mel_spec": {"n_mel_channels": 100, "mel_spec_type": "bigvgan"},
}


@pytest.fixture
def tiny_variants(monkeypatch: pytest.MonkeyPatch) -> None:
    """Released names with tiny sizes, for the real ones take gigabytes."""
    variants = {
        "F5TTS_v1_Base": TINY,
        "F5TTS_Base": replace(TINY, text_mask_padding=False, pe_attn_head=1),
        "E2TTS_Base": TINY_E2,
    }
    monkeypatch.setattr(checkpoint, "VARIANTS", variants)


def weights_of(config: BackboneConfig) -> dict[str, Tensor]:
    torch.manual_seed(3)
    return {f"transformer.{name}": torch.randn(shape) for name, shape in expected_shapes(config).items()}


def averaged(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """As released: the moving average with its counters."""
    counters = {"initted": torch.tensor(True), "step": torch.tensor(7)}
    return {f"ema_model.{name}": value for name, value in weights.items()} | counters


def released(folder: Path, config: BackboneConfig = TINY, **extra: Tensor) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    save_file(averaged(weights_of(config)) | extra, folder / "model_1.safetensors")
    return folder


def test_the_released_architectures_have_distinct_sizes_but_for_their_versions() -> None:
    shapes = {name: expected_shapes(config) for name, config in VARIANTS.items()}
    for name, own in shapes.items():
        alike = {one.replace("_v1", "") for one, other in shapes.items() if other == own}
        assert alike == {name.replace("_v1", "")}


@pytest.mark.parametrize("name", ["F5TTS_v1_Base", "F5TTS_Base"])
def test_the_folder_says_the_version(tmp_path: Path, tiny_variants: None, name: str) -> None:
    found = read_f5_checkpoint(released(tmp_path / name))
    assert found.variant == name
    assert found.config.text_mask_padding == (name == "F5TTS_v1_Base")
    assert found.mel_style == "vocos"
    assert not any(key.startswith(("ema_model.", "transformer.")) for key in found.weights)
    backbone = found.build()
    assert torch.equal(backbone.proj_out.bias, weights_of(TINY)["transformer.proj_out.bias"])
    assert not backbone.training


def test_a_released_folder_can_name_the_other_mel_front_end(tmp_path: Path, tiny_variants: None) -> None:
    found = read_f5_checkpoint(released(tmp_path / "F5TTS_Base_bigvgan"))
    assert (found.variant, found.mel_style) == ("F5TTS_Base", "bigvgan")


def test_without_a_name_both_versions_are_offered_and_none_is_guessed(tmp_path: Path, tiny_variants: None) -> None:
    folder = released(tmp_path / "my fine-tune")
    with pytest.raises(VariantUnknown, match="F5TTS_v1_Base and F5TTS_Base alike") as caught:
        read_f5_checkpoint(folder)
    assert caught.value.candidates == ("F5TTS_v1_Base", "F5TTS_Base")
    assert pickle.loads(pickle.dumps(caught.value)).candidates == caught.value.candidates
    assert read_f5_checkpoint(folder, variant="F5TTS_Base").config.pe_attn_head == 1
    assert read_f5_checkpoint(released(tmp_path / "mine", TINY_E2)).variant == "E2TTS_Base", "no other has its weights"


def test_a_folder_of_a_training_is_taken_for_the_latest_release_unless_its_name_says_more(tmp_path: Path) -> None:
    for name, expected in (("mine", "F5TTS_v1_Base"), ("E2TTS_Base-mine", "E2TTS_Base")):
        folder = released(tmp_path / name)
        assert catalogue.id_of(str(folder)) == catalogue.id_of(str(folder / "model_1.safetensors")) == expected
    (tmp_path / "mine" / "model.yaml").write_text("model: {text_frontend: natural phones}")
    assert catalogue.id_of(str(tmp_path / "mine")) == "f5-mini"
    (tmp_path / "pt").mkdir()
    torch.save({"model_state_dict": weights_of(TINY)}, tmp_path / "pt" / "fine_tuned.pt")
    assert catalogue.id_of(str(tmp_path / "pt")) == "F5TTS_v1_Base", "by the names of its weights"
    refused("f5-mini", tmp_path, "holds no weights, but there are some in E2TTS_Base-mine, mine, pt; choose one")


def test_weights_that_fit_nothing_ask_for_a_description(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"fit none of F5TTS_v1_Base.*model\.yaml"):
        read_f5_checkpoint(released(tmp_path / "other"))


def test_a_sidecar_describes_any_size(tmp_path: Path) -> None:
    folder = released(tmp_path / "F5TTS_Base")
    (folder / "model.yaml").write_text(yaml.safe_dump({"model": SIDECAR}))
    found = read_f5_checkpoint(folder)
    assert found.config == TINY
    said = found.variant, found.tokenizer, found.mel_style, found.text_front_end
    assert said == ("tiny", "char", "bigvgan", "characters")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"arch": None}, "lacks the part 'arch'"),
        ({"backbone": "MMDiT"}, "'MMDiT' backbone"),
        ({"dim": "wide"}, "arch: dim should be a positive whole number, not 'wide'"),
        ({"surprise": 1}, "'surprise'"),
        ({"depth": 1_000_000_000}, "asks for more than its 54 weights"),
        ({"mel_spec": {"mel_spec_type": "wavenet"}}, "mel_spec_type should be one of vocos, bigvgan"),
        ({"text_frontend": "phones"}, "no text front end 'phones' .* models of earlier versions"),
    ],
)
def test_a_faulty_sidecar_is_named(tmp_path: Path, change: dict, message: str) -> None:
    folder = released(tmp_path / "x")
    inner = change.keys() & {"dim", "depth", "surprise"}
    model = SIDECAR | ({"arch": SIDECAR["arch"] | change} if inner else change)
    (folder / "model.yaml").write_text(yaml.safe_dump({"model": model}))
    with pytest.raises(CheckpointError, match=message):
        read_f5_checkpoint(folder)


def test_training_checkpoints_give_their_average(tmp_path: Path, tiny_variants: None) -> None:
    weights = weights_of(TINY)
    content = {
        "ema_model_state_dict": averaged(weights),
        "model_state_dict": {name: value + 1 for name, value in weights.items()},
        "optimizer_state_dict": {"state": {}},
        "update": 5,
    }
    (tmp_path / "F5TTS_v1_Base").mkdir()
    torch.save(content, tmp_path / "F5TTS_v1_Base/model_last.pt")
    found = read_f5_checkpoint(tmp_path / "F5TTS_v1_Base")
    assert torch.equal(found.weights["proj_out.bias"], weights["transformer.proj_out.bias"])


def test_a_fine_tune_brings_its_own_vocabulary(tmp_path: Path, tiny_variants: None) -> None:
    folder = released(tmp_path / "F5TTS_v1_Base", replace(TINY, text_num_embeds=77))
    assert read_f5_checkpoint(folder).config.text_num_embeds == 77


def test_keys_of_the_old_mel_front_end_are_left_out(tmp_path: Path, tiny_variants: None) -> None:
    old = {"ema_model.mel_spec.mel_stft.mel_scale.fb": torch.zeros(3)}
    read_f5_checkpoint(released(tmp_path / "F5TTS_v1_Base", **old)).build()


def test_a_missing_key_and_a_wrong_shape_are_named(tmp_path: Path, tiny_variants: None) -> None:
    folder = tmp_path / "F5TTS_v1_Base"
    folder.mkdir()
    weights = averaged(weights_of(TINY))
    del weights["ema_model.transformer.proj_out.bias"]
    weights["ema_model.transformer.norm_out.linear.bias"] = torch.zeros(3)
    save_file(weights, folder / "a.safetensors")
    with pytest.raises(CheckpointError) as caught:
        read_f5_checkpoint(folder)
    sentence = str(caught.value)
    assert "a.safetensors as F5TTS_v1_Base" in sentence
    assert "1 weight missing: proj_out.bias" in sentence
    assert "norm_out.linear.bias is 3 instead of 128" in sentence


@pytest.mark.parametrize("content", [{}, {"vocoder.weight": torch.zeros(2)}])
def test_other_models_are_refused(tmp_path: Path, content: dict) -> None:
    torch.save(content, tmp_path / "a.pt")
    with pytest.raises(CheckpointError, match="is not an F5-TTS or E2-TTS checkpoint"):
        read_f5_checkpoint(tmp_path / "a.pt")


def test_checkpoints_of_a_training_come_newest_first(tmp_path: Path) -> None:
    names = ["model_5000.pt", "pretrained_model_1250000.safetensors", "model_last.pt", "model_20000.pt", "other.ckpt"]
    for name in names[:2]:
        (tmp_path / name).touch()
    assert find_checkpoint(tmp_path).name == "model_5000.pt", "and not what it started from"
    for name in names[2:]:
        (tmp_path / name).touch()
    with pytest.raises(SeveralCheckpoints) as caught:
        find_checkpoint(tmp_path)
    expected = ["model_last.pt", "model_20000.pt", "model_5000.pt", "other.ckpt"]
    assert [Path(one).name for one in caught.value.files] == expected
    assert pickle.loads(pickle.dumps(caught.value)).files == caught.value.files


@pytest.mark.parametrize(
    ("names", "suffix", "wrapper"),
    crossed(
        [
            ("", "transformer."),
            ("module.", "transformer."),
            ("_orig_mod.", "transformer."),
            ("", "transformer._orig_mod."),
            ("module._orig_mod.", "transformer."),
            ("ema_model.", "transformer._orig_mod."),
            ("ema_model.module.", "transformer."),
            ("ema_model._orig_mod.module.", "transformer.module."),
            ("model.", "transformer."),
        ],
        [".pt", ".pth", ".ckpt"],
        ["", "ema_model_state_dict", "model_state_dict", "state_dict"],
    ),
)
def test_names_that_a_training_has_wrapped_are_those_of_the_release(
    tmp_path: Path, tiny_variants: None, names: tuple[str, str], suffix: str, wrapper: str
) -> None:
    plain, (before, within) = weights_of(TINY), names
    weights = {f"{before}{within}{name.removeprefix('transformer.')}": value for name, value in plain.items()}
    if before.startswith("ema_model."):
        weights |= {"initted": torch.tensor(True), "step": torch.tensor(7)}
        weights |= {f"online_model.{name}": value + 1 for name, value in plain.items()}
    folder = tmp_path / "F5TTS_v1_Base"
    folder.mkdir()
    torch.save({wrapper: weights, "update": 5} if wrapper else weights, folder / f"model_last{suffix}")
    found = read_f5_checkpoint(folder)
    assert {f"transformer.{name}" for name in found.weights} == set(plain)
    assert all(torch.equal(value, plain[f"transformer.{name}"]) for name, value in found.weights.items())
    found.build()


def test_two_names_of_one_weight_are_refused(tmp_path: Path, tiny_variants: None) -> None:
    torch.save(weights_of(TINY) | {"module.transformer.proj_out.bias": torch.zeros(100)}, tmp_path / "a.pt")
    with pytest.raises(CheckpointError, match=r"holds the weight 'transformer\.proj_out\.bias' twice"):
        read_f5_checkpoint(tmp_path / "a.pt", "F5TTS_v1_Base")


@pytest.mark.parametrize(
    "name",
    [
        "base_model.model.transformer.transformer_blocks.0.attn.to_q.lora_A.weight",
        "lora_unet_blocks_0_attn.lora_up.weight",
    ],
)
def test_a_lora_says_how_to_merge_it(tmp_path: Path, name: str) -> None:
    weights = {name: torch.zeros(4, 4)}
    torch.save({"model_state_dict": weights}, tmp_path / "a.pt")
    with pytest.raises(CheckpointError, match=r"is a LoRA, .* merge it first\. With PEFT: .*merge_and_unload\(\)"):
        read_f5_checkpoint(tmp_path)
    (tmp_path / "a.pt").unlink()
    save_file(weights, tmp_path / "adapter_model.safetensors")
    with pytest.raises(CheckpointError, match="merge it first"):
        read_f5_checkpoint(tmp_path)
    (tmp_path / "adapter_config.json").write_text("{}")
    for model in ("F5TTS_Base", "Llasa-1B", "CosyVoice2-0.5B", "Qwen3-TTS-12Hz-0.6B-Base", "OmniVoice"):
        refused(model, tmp_path, r"is a LoRA, .* merge it first")
