from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from engine.models import load_model
from engine.models.base import run_to_completion
from engine.models.catalogue import VOICES, entry
from engine.models.megatts3.checkpoint import TRANSFORMER, WAVVAE
from engine.models.megatts3.phone_table import ENGLISH_TONE
from engine.models.minis.folder import WEIGHTS
from engine.models.minis.megatts3_mini.checkpoint import MegaMiniFolder
from engine.models.minis.megatts3_mini.mel_codec import MelCodec, MelCodecConfig
from engine.models.minis.megatts3_mini.phones import phone_ids
from engine.models.shipped_voices import read_voice
from engine.models.silent_observer import SilentObserver
from engine.paths import resource
from engine.setting.setting import Setting
from engine.training.recipes import megatts3_mini as mega_mini
from engine.training.recipes.mega_recipe import MegaOptions, collate_latents
from engine.training.recipes.megatts3_mini import ARCHITECTURE, MegaMini, latent_clips
from engine.training.recipes.mel_codec import MelCodecOptions, MelCodecRecipe
from tests.engine.training.learning import learning
from tests.engine.training.resuming import same_weights, whole_and_resumed
from tests.engine.training.toy_corpus import toy_corpus
from tests.workload import workload

CPU = torch.device("cpu")
SMALL = replace(
    ARCHITECTURE,
    dim=64,
    layers=2,
    heads=1,
    ff_hidden=96,
    local_cond=16,
    phone_layers=1,
    phone_heads=2,
    phone_ff_hidden=64,
)
SMALL_CODEC = MelCodecConfig(width=32, inner_width=48, frame_layers=1, latent_layers=1)
QUICK = MegaOptions(frames=120, matrix_rate=0.05, other_rate=5e-3, warm_up=5, average_decay=0.9, validation_items=4)


@pytest.fixture(scope="module")
def codec_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A codec that has only just begun to learn, which is enough to have latents."""
    recipe = MelCodecRecipe(toy_corpus(), CPU, MelCodecOptions(frames=32, batch=8, warm_up=5), SMALL_CODEC)
    for number in range(1, 31):
        recipe.step(number, 0.1)
    folder = tmp_path_factory.mktemp("codec")
    recipe.export(folder)
    return folder


def recipe(codec_folder: Path, work: Path, options: MegaOptions = QUICK) -> MegaMini:
    return MegaMini(toy_corpus(), codec_folder, work, CPU, options, SMALL)


@pytest.mark.parametrize("half", [False, True], ids=["float32", "bfloat16"])
def test_the_held_out_loss_falls_at_both_times(half: bool, codec_folder: Path, tmp_path: Path):
    def make(options: MegaOptions) -> MegaMini:
        return recipe(codec_folder, tmp_path, options)

    learnt = learning(make, replace(QUICK, half_precision=half), workload(60, 36), lambda number: number / 61)
    assert set(learnt.taught.before) == {"t=0.05", "t=0.40"}
    learnt.assert_validation_falls("t=0.05", "t=0.40")
    assert all(value.dtype == torch.float32 for value in learnt.taught.recipe.model.parameters())


def test_a_resumed_run_ends_with_the_same_bits(codec_folder: Path, tmp_path: Path):
    whole, resumed = whole_and_resumed(lambda: recipe(codec_folder, tmp_path / "latents"), tmp_path)
    assert same_weights(resumed.model, whole.model)
    assert same_weights(resumed.average.module, whole.average.module)


def test_all_parameters_learn(codec_folder: Path, tmp_path: Path):
    run = recipe(codec_folder, tmp_path, replace(QUICK, frames=400, warm_up=0))
    before = {name: value.clone() for name, value in run.model.named_parameters()}
    for number in range(1, 5):
        run.step(number, 0.1)
    still = [name for name, value in run.model.named_parameters() if torch.equal(value, before[name])]
    assert still == []


def test_latents_are_kept_and_equal_those_of_one_clip_alone(
    codec_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    codec, clips = MelCodec.load(codec_folder), toy_corpus().training
    kept = tmp_path / "some" / "latents.npy"
    first = latent_clips(clips, codec, kept)
    monkeypatch.setattr(MelCodec, "encode", lambda *_: pytest.fail("the latents were there already"))
    again = latent_clips(clips, codec, kept)
    monkeypatch.undo()
    for clip, one, same in zip(clips, first, again, strict=True):
        assert one.frames == clip.frames // 4
        assert len(one.phones_of_frames) == 4 * one.frames
        np.testing.assert_array_equal(one.latents, same.latents)
        mel = torch.from_numpy(clip.mel[: 4 * one.frames].astype(np.float32))[None]
        np.testing.assert_allclose(codec.encode(mel)[0].numpy(), one.latents, atol=2e-3, rtol=1e-3)
        assert one.phones.tolist() == phone_ids(phone for phone, _, _ in clip.phones).tolist()


def test_a_batch_counts_the_phones_of_a_second_clip_after_those_of_the_first(codec_folder: Path, tmp_path: Path):
    clips = latent_clips(toy_corpus().training, MelCodec.load(codec_folder), tmp_path / "latents.npy")
    batch = collate_latents([[clips[0], clips[2]], [clips[1]]])
    both, count = clips[0].frames + clips[2].frames, len(clips[0].phones)
    assert batch.lengths.tolist() == [both, clips[1].frames]
    assert batch.joins.tolist() == [clips[0].frames, 0]
    places = batch.phones_of_frames[0]
    assert places[: 4 * clips[0].frames].tolist() == clips[0].phones_of_frames.tolist()
    assert (places[4 * clips[0].frames : 4 * both] - count).tolist() == clips[2].phones_of_frames.tolist()
    assert not batch.phones_of_frames[1, 4 * clips[1].frames :].any()
    assert not batch.latents[1, clips[1].frames :].any()
    assert torch.equal(batch.tones == ENGLISH_TONE, batch.phones > 0)


@pytest.mark.skipif(shutil.which("flite") is None, reason="flite is not installed")
def test_the_export_is_loaded_and_speaks(codec_folder: Path, tmp_path: Path):
    run = recipe(codec_folder, tmp_path / "work")
    run.step(1, 0.5)
    place = tmp_path / "models" / MegaMini.name
    run.export(place)
    (place.parent / "vocos-mini").symlink_to(resource("models", "vocos-mini"))
    backbone = MegaMiniFolder(place).backbone()
    assert backbone.config == SMALL
    for name, value in run.average.module.state_dict().items():
        torch.testing.assert_close(backbone.state_dict()[name], value, atol=1e-3, rtol=1e-3)
    model = load_model(MegaMini.name, folder=str(place), device="cpu")
    setting = Setting(MegaMini.name, entry(MegaMini.name).options_with(steps=2))
    voice = read_voice(place / "voices", "slt")
    said = run_to_completion(model.synthesise("aim", voice, setting, (), SilentObserver()))
    assert len(said.samples) > 2_000
    assert np.isfinite(said.samples).all()


def test_the_bundled_model_fits_its_budget_and_is_that_of_the_recipe():
    folder = resource("models", "megatts3-mini")
    files = [one for one in folder.rglob("*") if one.is_file()]
    assert sum(one.stat().st_size for one in files) <= 20_000_000
    backbone = MegaMiniFolder(folder).backbone()
    assert backbone.config == ARCHITECTURE
    assert sum(one.numel() for one in backbone.parameters()) <= 8_000_000
    assert {one.relative_to(folder).as_posix() for one in files} == {
        "durations.json",
        "training.jsonl",
        f"{TRANSFORMER}/config.yaml",
        f"{TRANSFORMER}/{WEIGHTS}",
        f"{WAVVAE}/config.yaml",
        f"{WAVVAE}/mel_codec.safetensors",
        f"{WAVVAE}/training.jsonl",
        *(f"{VOICES}/{voice}.{ending}" for voice in ("slt", "rms") for ending in ("wav", "json", "npy")),
    }


def test_bundled_latents_are_those_of_the_bundled_recordings():
    import soundfile

    from engine.audio.mel import MelFrontEnd

    folder = resource("models", "megatts3-mini")
    codec = MelCodec.load(folder / WAVVAE)
    for voice in ("slt", "rms"):
        latents = np.load(folder / VOICES / f"{voice}.npy")
        samples, rate = soundfile.read(folder / VOICES / f"{voice}.wav", dtype="float32")
        assert rate == 24_000
        assert latents.dtype == np.float32
        frames = len(samples) // 256 // 4 * 4
        assert latents.shape == (1, frames // 4, 32)
        mel = MelFrontEnd()(torch.from_numpy(samples))[:, :frames]
        # 24 bits are not quite what flite said: it shows where the mel is at its floor.
        np.testing.assert_allclose(codec.encode(mel).numpy(), latents, atol=0.05)
        phones = json.loads((folder / VOICES / f"{voice}.json").read_text(encoding="utf-8"))["phones"]
        assert phones[-1][2] == pytest.approx(len(samples) / rate, abs=1e-3)


def test_the_options_are_what_the_log_says():
    log = resource("models", "megatts3-mini", "training.jsonl").read_text(encoding="utf-8").splitlines()
    header = json.loads(log[0])
    assert header["recipe"] == MegaMini.name
    # Rates could not be scaled when this one was made.
    assert header["options"].keys() | {"rate_scale"} == set(mega_mini.MegaOptions.__dataclass_fields__)
