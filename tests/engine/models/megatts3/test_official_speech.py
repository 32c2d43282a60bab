"""The official release as the engine uses it: aligner, grapheme model, duration model, transformer, WavVAE.

Its parts are small and have random weights, in the official layout: what they say is noise, but every step is real.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from paretone.errors import CheckpointError, SettingError
from paretone.files import wav
from paretone.models import catalogue, load_model
from paretone.models.base import Synthesis, Voice
from paretone.models.megatts3 import graphemes
from paretone.models.megatts3.adapter import MegaSpeech
from paretone.models.megatts3.checkpoint import OfficialFolder, read_part
from paretone.models.megatts3.duration_model import DurationModel
from paretone.setting.setting import Setting
from paretone.speaking import synthesise
from paretone.techniques.ditreducio.table import StrategyTable
from tests.engine.models.megatts3.small_release import (
    SMALL_ALIGNER,
    SMALL_DIT,
    SMALL_WAVVAE,
    TRANSFORMER_CONFIG,
    save_checkpoint,
    write_config,
    write_folder,
    write_release,
)


@pytest.fixture
def release(tmp_path: Path) -> Path:
    write_release(tmp_path)
    return tmp_path


def weights_of(path: Path, name: str) -> dict[str, torch.Tensor]:
    return dict(torch.load(path, weights_only=True)["state_dict"][name])


def test_a_whole_release_loads_with_its_sizes(release: Path) -> None:
    folder = OfficialFolder(release)
    folder.require_parts()
    assert folder.window() == 1200
    assert folder.backbone().config == SMALL_DIT
    assert folder.aligner().config == SMALL_ALIGNER
    assert folder.duration_model().config.width == 48
    assert folder.wavvae().config == SMALL_WAVVAE
    assert folder.wavvae().encoder is None


def test_parts_that_are_missing_are_named(release: Path) -> None:
    (release / "g2p").rmdir()
    with pytest.raises(CheckpointError, match="lacks g2p"):
        OfficialFolder(release).require_parts()
    with pytest.raises(CheckpointError, match=r"lacks diffusion_transformer, aligner_lm.*g2p"):
        OfficialFolder(release / "nowhere").require_parts()


PARTS = [
    ("backbone", "diffusion_transformer/model_only_last.ckpt", "dit", "encoder.layers.1.attention.wq.bias"),
    ("aligner", "aligner_lm/model_only_last.ckpt", "model", "decoder.blocks.0.cross_attn.out.bias"),
    ("duration_model", "duration_lm/model_only_last.ckpt", "dur_model", "layers.0.op.ffn.ffn_2.bias"),
    ("wavvae", "wavvae/decoder.ckpt", "model_gen", "latent_upsampler.upsample.3.weight_v"),
]


@pytest.mark.parametrize(("part", "file", "name", "weight"), PARTS)
def test_every_part_is_read_strictly(release: Path, part: str, file: str, name: str, weight: str) -> None:
    whole = weights_of(release / file, name)
    read = getattr(OfficialFolder(release), part)
    save_checkpoint(release / file, name, {key: value for key, value in whole.items() if key != weight})
    with pytest.raises(CheckpointError, match=f"1 weight missing: {weight}"):
        read()
    save_checkpoint(release / file, name, whole | {"surplus.weight": torch.zeros(2)})
    with pytest.raises(CheckpointError, match=r"1 weight unexpected: surplus\.weight"):
        read()
    save_checkpoint(release / file, "something_else", whole)
    with pytest.raises(CheckpointError, match=f"no weights under state_dict/{name}"):
        read()
    (release / file).unlink()
    with pytest.raises(CheckpointError, match="is missing"):
        read()


def test_wrappers_of_training_tools_are_taken_off(release: Path) -> None:
    path = release / "aligner_lm/model_only_last.ckpt"
    whole = weights_of(path, "model")
    save_checkpoint(path, "model", {f"module._orig_mod.{name}": value for name, value in whole.items()})
    assert read_part(path, "model").keys() == whole.keys()
    OfficialFolder(release).aligner()


def test_inputs_that_are_never_given_may_have_weights(release: Path) -> None:
    path = release / "duration_lm/model_only_last.ckpt"
    whole = weights_of(path, "dur_model")
    save_checkpoint(path, "dur_model", whole | {"char_encoder.emb.weight": torch.zeros(4000, 32)})
    OfficialFolder(release).duration_model()


@pytest.mark.parametrize(
    ("entries", "words"),
    [({"win_size": None}, "lacks 'win_size'"), ({"frames_multiple": 4}, "frames_multiple is 4, but only 8")],
)
def test_the_transformers_configuration_is_checked(release: Path, entries: dict, words: str) -> None:
    write_config(release / "diffusion_transformer/config.yaml", TRANSFORMER_CONFIG | entries)
    with pytest.raises(CheckpointError, match=words):
        OfficialFolder(release).window()


MODEL = "MegaTTS3"
TEXT = "A short sentence."
STEPS = 3


def write_voice(path: Path, latents: bool = True) -> Path:
    """A second and two thirds of noise, for which the release wants 54 latents."""
    path.parent.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(0)
    path.write_bytes(wav((random.standard_normal(40000) * 0.1).astype(np.float32), 24000))
    if latents:
        np.save(path.with_suffix(".npy"), random.standard_normal((1, 55, 32)).astype(np.float32))
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("transformers")
    root = tmp_path_factory.mktemp("models") / MODEL
    write_release(root)
    write_folder(root / "g2p")
    write_voice(root / "voices" / "some_noise.wav")
    return root


@pytest.fixture(scope="module")
def model(folder: Path) -> MegaSpeech:
    return load_model(MODEL, folder=str(folder), device="cpu")


@pytest.fixture(autouse=True)
def short_readings(monkeypatch: pytest.MonkeyPatch) -> None:
    """A grapheme model with random weights never comes to an end."""
    monkeypatch.setattr(graphemes, "LONGEST", 6)


def setting(**changes: object) -> Setting:
    return Setting(MODEL, catalogue.entry(MODEL).options_with(steps=STEPS, **changes), seed=3)


def own(path: Path) -> Voice:
    return Voice("own", "Own", str(path), "")


def speak(
    model: MegaSpeech, who: Voice, text: str = TEXT, of: Setting | None = None, *tables: StrategyTable
) -> Synthesis:
    return synthesise(model, text, who, of or setting(), tables)


@pytest.mark.slow
def test_it_speaks_in_the_voices_of_its_folder(model: MegaSpeech, folder: Path) -> None:
    (released,) = catalogue.voices(MODEL, str(folder))
    assert (released.id, released.title) == ("some_noise", "some noise")
    said = speak(model, catalogue.voice("", MODEL, str(folder)))
    assert said.sample_rate == 24000
    # Whole latents of 40 ms; the last pause alone is at least 0.64 s.
    assert len(said.samples) % 960 == 0 and len(said.samples) > 0.64 * 24000
    assert np.isfinite(said.samples).all() and np.abs(said.samples).max() > 0
    assert any("did not finish reading" in note for note in said.notes)
    assert np.array_equal(said.samples, speak(model, released).samples)
    fast = speak(model, released, of=setting(speed=2.0))
    assert len(fast.samples) < len(said.samples)


@pytest.mark.slow
def test_disturbed_durations_are_alike_for_all_takes_of_a_text(
    model: MegaSpeech, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Random weights predict no length at all, of which nothing can be disturbed.
    monkeypatch.setattr(DurationModel, "predict", lambda self, heard, phones, tones, check: [61] * phones.shape[1])
    released = catalogue.voice("some_noise", MODEL, str(folder))

    def phones(**changes: object) -> list[int]:
        _, made = model._prepare("Another sentence.", released, setting(**changes).options)
        (passage,) = made.passages
        return passage.mel2ph[0].tolist()

    plain, disturbed = phones(), phones(disturbance=50.0)
    assert plain != disturbed, "what was read last is not taken for it"
    assert phones(similarity=1.0) == plain
    assert phones(similarity=1.0, disturbance=50.0) == disturbed
    with pytest.raises(SettingError, match="Duration noise must lie between 0 and 50 %"):
        speak(model, released, of=setting(disturbance=80.0))


@pytest.mark.slow
def test_with_an_encoder_of_the_users_own_any_recording_will_do(folder: Path, tmp_path: Path) -> None:
    root = tmp_path / MODEL
    write_release(root, encoder=True)
    shutil.copytree(folder / "g2p", root / "g2p", dirs_exist_ok=True)
    model = load_model(MODEL, folder=str(root), device="cpu")
    audio = write_voice(tmp_path / "mine.wav", latents=False)
    said = speak(model, own(audio))
    assert np.abs(said.samples).max() > 0


def test_without_transformers_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_release(tmp_path / MODEL)
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(CheckpointError, match=r"pip install 'paretone\[megatts3\]"):
        load_model(MODEL, folder=str(tmp_path / MODEL), device="cpu")


def test_a_release_without_voices_says_where_to_put_them(tmp_path: Path) -> None:
    assert catalogue.voices(MODEL, str(tmp_path)) == ()
    write_voice(tmp_path / "voices" / "incomplete.wav", latents=False)
    assert catalogue.voices(MODEL, str(tmp_path)) == ()
    with pytest.raises(SettingError, match=r"there is none yet\).*name\.wav and name\.npy\) into .*voices"):
        catalogue.voice("", MODEL, str(tmp_path))
    write_voice(tmp_path / "voices" / "anna.wav")
    with pytest.raises(SettingError, match=r"no voice named 'nobody' \(known voices: anna\)"):
        catalogue.voice("nobody", MODEL, str(tmp_path))
