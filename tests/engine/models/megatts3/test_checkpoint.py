from __future__ import annotations

import pickle
from pathlib import Path

import pytest
import torch

from paretone.errors import Cancelled, CheckpointError
from paretone.models.megatts3.checkpoint import OfficialFolder, read_part
from tests.engine.models.megatts3.small_release import (
    SMALL_ALIGNER,
    SMALL_DIT,
    SMALL_WAVVAE,
    TRANSFORMER_CONFIG,
    save_checkpoint,
    write_config,
    write_release,
)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write_release(tmp_path)
    return tmp_path


def weights_of(path: Path, name: str) -> dict[str, torch.Tensor]:
    return dict(torch.load(path, weights_only=True)["state_dict"][name])


def test_a_whole_release_loads_with_its_sizes(root: Path) -> None:
    folder = OfficialFolder(root)
    folder.require_parts()
    assert folder.window() == 1200
    assert folder.backbone().config == SMALL_DIT
    assert folder.aligner().config == SMALL_ALIGNER
    assert folder.duration_model().config.width == 48
    assert folder.wavvae().config == SMALL_WAVVAE
    assert folder.wavvae().encoder is None


def test_weights_are_those_of_the_file(root: Path) -> None:
    folder = OfficialFolder(root)
    stored = weights_of(root / "aligner_lm/model_only_last.ckpt", "model")
    assert all(torch.equal(value, stored[name]) for name, value in folder.aligner().state_dict().items())
    stored = weights_of(root / "wavvae/decoder.ckpt", "model_gen")
    fused = folder.wavvae().state_dict()["decoder.model_up.1.weight"]
    norm = stored["decoder.model_up.1.weight_v"].flatten(1).norm(dim=1)
    assert torch.allclose(fused.flatten(1).norm(dim=1), stored["decoder.model_up.1.weight_g"].flatten().abs())
    assert norm.min() > 0


def test_an_encoder_of_the_users_is_taken_where_upstream_looks_for_it(tmp_path: Path) -> None:
    write_release(tmp_path, encoder=True)
    assert OfficialFolder(tmp_path).wavvae().encoder is not None


def test_parts_that_are_missing_are_named(root: Path) -> None:
    (root / "g2p").rmdir()
    with pytest.raises(CheckpointError, match="lacks g2p"):
        OfficialFolder(root).require_parts()
    with pytest.raises(CheckpointError, match=r"lacks diffusion_transformer, aligner_lm.*g2p"):
        OfficialFolder(root / "nowhere").require_parts()


PARTS = [
    ("backbone", "diffusion_transformer/model_only_last.ckpt", "dit", "encoder.layers.1.attention.wq.bias"),
    ("aligner", "aligner_lm/model_only_last.ckpt", "model", "decoder.blocks.0.cross_attn.out.bias"),
    ("duration_model", "duration_lm/model_only_last.ckpt", "dur_model", "layers.0.op.ffn.ffn_2.bias"),
    ("wavvae", "wavvae/decoder.ckpt", "model_gen", "latent_upsampler.upsample.3.weight_v"),
]


@pytest.mark.parametrize(("part", "file", "name", "weight"), PARTS)
def test_every_part_is_read_strictly(root: Path, part: str, file: str, name: str, weight: str) -> None:
    whole = weights_of(root / file, name)
    read = getattr(OfficialFolder(root), part)
    save_checkpoint(root / file, name, {key: value for key, value in whole.items() if key != weight})
    with pytest.raises(CheckpointError, match=f"1 weight missing: {weight}"):
        read()
    save_checkpoint(root / file, name, whole | {"surplus.weight": torch.zeros(2)})
    with pytest.raises(CheckpointError, match=r"1 weight unexpected: surplus\.weight"):
        read()
    save_checkpoint(root / file, name, whole | {weight: torch.full_like(whole[weight], float("nan"))})
    with pytest.raises(CheckpointError, match="not numbers"):
        read()
    save_checkpoint(root / file, "something_else", whole)
    with pytest.raises(CheckpointError, match=f"no weights under state_dict/{name}"):
        read()
    (root / file).unlink()
    with pytest.raises(CheckpointError, match="is missing"):
        read()


def test_wrappers_of_training_tools_are_taken_off(root: Path) -> None:
    path = root / "aligner_lm/model_only_last.ckpt"
    whole = weights_of(path, "model")
    save_checkpoint(path, "model", {f"module._orig_mod.{name}": value for name, value in whole.items()})
    assert read_part(path, "model").keys() == whole.keys()
    OfficialFolder(root).aligner()


def test_inputs_that_are_never_given_may_have_weights(root: Path) -> None:
    path = root / "duration_lm/model_only_last.ckpt"
    whole = weights_of(path, "dur_model")
    save_checkpoint(path, "dur_model", whole | {"char_encoder.emb.weight": torch.zeros(4000, 32)})
    OfficialFolder(root).duration_model()


class Malicious:
    def __reduce__(self) -> tuple:
        return Path.touch, (Path("/tmp/never-made-by-a-checkpoint"),)


def test_a_file_with_code_in_it_is_refused(root: Path) -> None:
    path = root / "wavvae/decoder.ckpt"
    path.write_bytes(pickle.dumps({"state_dict": {"model_gen": Malicious()}}))
    with pytest.raises(CheckpointError, match="holds code"):
        OfficialFolder(root).wavvae()
    assert not Path("/tmp/never-made-by-a-checkpoint").exists()


@pytest.mark.parametrize(
    ("entries", "words"),
    [({"win_size": None}, "lacks 'win_size'"), ({"frames_multiple": 4}, "frames_multiple is 4, but only 8")],
)
def test_the_transformers_configuration_is_checked(root: Path, entries: dict, words: str) -> None:
    write_config(root / "diffusion_transformer/config.yaml", TRANSFORMER_CONFIG | entries)
    with pytest.raises(CheckpointError, match=words):
        OfficialFolder(root).window()


@pytest.mark.parametrize("content", [b"- a\n- b\n", b"\xff\xfe\x00", b"a: [1\n"])
def test_a_configuration_that_cannot_be_read_is_named(root: Path, content: bytes) -> None:
    (root / "wavvae/config.yaml").write_bytes(content)
    with pytest.raises(CheckpointError, match=r"wavvae/config\.yaml"):
        OfficialFolder(root).wavvae()


def test_loading_can_be_cancelled(root: Path) -> None:
    def check() -> None:
        raise Cancelled

    with pytest.raises(Cancelled):
        OfficialFolder(root, check).aligner()
