"""The official release as the engine uses it: aligner, grapheme model, duration model, transformer, WavVAE.

Its parts are small and have random weights, in the official layout: what they say is noise, but every step is real.
"""

import shutil
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from paretone.audio.recording import Recording
from paretone.errors import AudioError, CheckpointError, SettingError
from paretone.models import catalogue
from paretone.models.base import Synthesis, Voice
from paretone.models.megatts3 import graphemes
from paretone.models.megatts3.adapter import MegaSpeech
from paretone.models.megatts3.checkpoint import OfficialFolder, read_part
from paretone.models.megatts3.duration_model import DurationModel
from paretone.models.megatts3.front_end import PromptRecording, prepare_recording, read_latents
from paretone.models.megatts3.wavvae import PaddedConv1d, WavVAE, sampled_latents
from paretone.setting.setting import Setting
from paretone.speaking import synthesise
from tests.engine.models import official
from tests.engine.models.megatts3.small_release import (
    SMALL_ALIGNER,
    SMALL_DIT,
    SMALL_WAVVAE,
    WAVVAE_CONFIG,
    save_checkpoint,
    wavvae_weights,
    write_config,
    write_release,
    write_voice,
)
from tests.workload import crossed

WINDOW = 1200


def recording(samples: int, rate: int = 24000) -> Recording:
    noise = np.random.default_rng(0).standard_normal(samples) * 0.1
    return Recording(noise.astype(np.float32), rate)


@pytest.fixture
def prompt() -> PromptRecording:
    return prepare_recording(recording(60000), WINDOW)


@pytest.fixture
def audio(tmp_path: Path) -> Path:
    return official.write_noise(tmp_path / "voice.wav", 2.5)


def stored_latents(count: int, dtype: object = np.float32) -> np.ndarray:
    return np.random.default_rng(1).standard_normal((1, count, 32)).astype(dtype)


def test_recordings_are_filled_up_as_upstream_does() -> None:
    for samples in (1198, 1199, 1200, 155178, 60000):
        padded = len(prepare_recording(recording(samples), WINDOW).samples) - 12000
        assert padded % WINDOW == WINDOW - 1
        assert 0 <= padded - samples < WINDOW


@pytest.mark.parametrize(
    ("shape", "spare", "dtype"), crossed([(1, -1, 32), (-1, 32)], [0, 1, 2], [np.float32, np.float16, ">f4"])
)
def test_latents_are_read_and_cut(
    prompt: PromptRecording, audio: Path, shape: tuple[int, ...], spare: int, dtype: object
) -> None:
    path = audio.with_suffix(".npy")
    stored = stored_latents(prompt.latents + spare, dtype)
    np.save(path, stored.reshape(shape))
    found = read_latents(path, prompt, audio)
    assert found.dtype == torch.float32
    assert np.array_equal(found.numpy(), stored[:, : prompt.latents].astype(np.float32))


def test_latents_of_another_recording_are_refused_with_both_numbers(prompt: PromptRecording, audio: Path) -> None:
    for stored in (20, prompt.latents - 1):
        np.save(audio.with_suffix(".npy"), stored_latents(stored))
        words = rf"has {stored} latents .*voice\.wav needs {prompt.latents} .*belong together"
        with pytest.raises(AudioError, match=words):
            read_latents(audio.with_suffix(".npy"), prompt, audio)


@pytest.mark.parametrize(
    ("array", "words"),
    [
        (np.zeros((1, 32, 77), np.float32), "the shape 1 × 32 × 77"),
        (np.float32(1), "the shape one number"),
        (np.zeros((0, 32), np.float32), "has 0 latents"),
        (np.zeros((1, 77, 32), np.int64), "of the type int64"),
        (np.full((1, 77, 32), np.nan, np.float32), "not numbers"),
    ],
)
def test_arrays_that_are_no_latents_are_named(
    prompt: PromptRecording, audio: Path, array: np.ndarray, words: str
) -> None:
    path = audio.with_suffix(".npy")
    np.save(path, array)
    with pytest.raises(AudioError, match=words):
        read_latents(path, prompt, audio)


class Malicious:
    def __reduce__(self) -> tuple:
        return Path.touch, (Path("/tmp/never-made-by-a-latent"),)


def test_files_that_are_no_arrays_are_refused_and_never_unpickled(prompt: PromptRecording, audio: Path) -> None:
    path = audio.with_suffix(".npy")
    np.save(path, np.array([Malicious()], dtype=object), allow_pickle=True)
    with pytest.raises(AudioError, match="not a file of latents"):
        read_latents(path, prompt, audio)
    assert not Path("/tmp/never-made-by-a-latent").exists()
    np.savez(path.with_suffix(".npz"), stored_latents(5))
    path.with_suffix(".npz").replace(path)
    with pytest.raises(AudioError, match="archive"):
        read_latents(path, prompt, audio)
    for content in (b"", b"RIFF", b"PK\x03\x04", b"\x93NUMPY\x01\x00\x10\x00{'descr': '<f4', "):
        path.write_bytes(content)
        with pytest.raises(AudioError, match="not a file of latents"):
            read_latents(path, prompt, audio)
    np.save(path, stored_latents(prompt.latents))
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(AudioError, match="not a file of latents"):
        read_latents(path, prompt, audio)


def load(folder: Path, weights: dict[str, Tensor], **entries: object) -> WavVAE:
    changed = {name: value for name, value in (WAVVAE_CONFIG | entries).items() if value is not None}
    write_config(folder / "config.yaml", changed)
    return WavVAE.from_official(folder / "config.yaml", weights, "decoder.ckpt")


@pytest.fixture(scope="module")
def decoder(tmp_path_factory: pytest.TempPathFactory) -> WavVAE:
    """A decoder with weights large enough that what is far away is still heard."""
    weights = {name: value * 8 if name.endswith("weight_g") else value for name, value in wavvae_weights().items()}
    return load(tmp_path_factory.mktemp("wavvae"), weights)


@pytest.fixture(scope="module")
def latents() -> Tensor:
    return torch.randn((1, 24, 32), generator=torch.Generator().manual_seed(3))


@pytest.mark.parametrize("prompt", [1, 7])
def test_decoding_the_target_alone_equals_decoding_everything(decoder: WavVAE, latents: Tensor, prompt: int) -> None:
    whole = decoder.decode(latents)
    assert whole.shape == (1, 24 * 960)
    target = decoder.decode(latents, prompt)
    assert target.shape == (1, (24 - prompt) * 960)
    assert torch.allclose(target, whole[:, prompt * 960 :], atol=1e-5, rtol=0)


def test_the_margin_is_as_large_as_it_must_be(decoder: WavVAE, latents: Tensor) -> None:
    """Latents before the margin change nothing; its first latent does."""
    prompt = 12
    target = decoder.decode(latents)[:, prompt * 960 :]
    changes = []
    for place in (prompt - decoder.margin - 1, prompt - decoder.margin):
        other = latents.clone()
        other[:, place] += 5.0
        changes.append((decoder.decode(other)[:, prompt * 960 :] - target).abs().max().item())
    assert changes[0] == 0
    assert changes[1] > 0
    assert decoder.margin == 6


@pytest.mark.parametrize(
    ("entries", "words"),
    [
        ({"hop_size": 4}, "should be the 960 samples"),
        ({"hop_size": "240"}, "hop_size should be a positive whole number, not '240'"),
        ({"melgan_config": {"use_tanh": True, "num_band": 4}}, "num_band"),
        ({"melgan_config": {}}, "lacks 'use_tanh'"),
    ],
)
def test_a_contradicting_configuration_is_named(tmp_path: Path, entries: dict, words: str) -> None:
    with pytest.raises(CheckpointError, match=words):
        load(tmp_path, wavvae_weights(), **entries)


def test_a_file_with_both_halves_encodes_and_decodes(tmp_path: Path) -> None:
    model = load(tmp_path, wavvae_weights(encoder=True))
    samples = 0.1 * torch.randn((1, 10 * 960 + 1), generator=torch.Generator().manual_seed(0))
    encoded = model.encode(samples, torch.Generator().manual_seed(5))
    assert encoded.shape == (1, 11, 32)
    assert torch.equal(encoded, model.encode(samples, torch.Generator().manual_seed(5)))
    assert not torch.equal(encoded, model.encode(samples, torch.Generator().manual_seed(6)))
    assert model.decode(encoded, 4).shape == (1, 7 * 960)


def test_an_encoder_that_is_not_complete_is_named(tmp_path: Path) -> None:
    weights = wavvae_weights(encoder=True)
    del weights["encoder.encoder.model.16.lstm.bias_hh_l1"]
    with pytest.raises(CheckpointError, match=r"encoder\.encoder\.model\.16\.lstm\.bias_hh_l1"):
        load(tmp_path, weights)
    with pytest.raises(CheckpointError, match=r"lacks the weight proj_to_z\.weight: it is not a complete encoder"):
        load(tmp_path, {name: value for name, value in weights.items() if not name.startswith("proj_to_z")})


def test_latents_are_drawn_around_the_mean_with_a_bounded_deviation() -> None:
    mean = torch.randn((1, 3, 32), generator=torch.Generator().manual_seed(1))
    drawn = sampled_latents(torch.cat([mean, torch.full_like(mean, -100.0)], -1), torch.Generator().manual_seed(2))
    assert torch.allclose(drawn, mean, atol=1e-5)
    assert not torch.equal(drawn, mean)
    wide = sampled_latents(torch.cat([mean, torch.full_like(mean, 100.0)], -1), torch.Generator().manual_seed(2))
    noise = torch.randn((1, 32, 3), generator=torch.Generator().manual_seed(2)).transpose(1, 2)
    assert torch.allclose(wide, mean + noise * torch.exp(torch.tensor(10.0)), rtol=1e-5)


def test_edges_are_reflected_with_the_larger_half_on_the_left() -> None:
    """A kernel over ten samples with stride five: five are added, three before and two after."""
    convolution = PaddedConv1d(1, 1, 10, 5)
    with torch.no_grad():
        convolution.conv["conv"].weight.copy_(torch.arange(10.0).view(1, 1, 10))
        convolution.conv["conv"].bias.zero_()
        found = convolution(torch.arange(10.0).view(1, 1, 10))[0, 0]
    padded = torch.tensor([3.0, 2, 1, *range(10), 8, 7])
    expected = [sum(place * padded[start + place] for place in range(10)) for start in (0, 5)]
    assert found.tolist() == [value.item() for value in expected]


@pytest.fixture
def release(tmp_path: Path) -> Path:
    write_release(tmp_path, graphemes=False)
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


MODEL = "MegaTTS3"
TEXT = "A short sentence."
STEPS = 3


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("transformers")
    root = tmp_path_factory.mktemp("models") / MODEL
    write_release(root)
    write_voice(root / "voices" / "some_noise.wav")
    return root


@pytest.fixture(scope="module")
def model(folder: Path) -> MegaSpeech:
    return official.load(MODEL, folder)


@pytest.fixture(autouse=True)
def short_readings(monkeypatch: pytest.MonkeyPatch) -> None:
    """A grapheme model with random weights never comes to an end."""
    monkeypatch.setattr(graphemes, "LONGEST", 6)


setting = partial(official.setting, MODEL, steps=STEPS)


def speak(model: MegaSpeech, who: Voice, of: Setting | None = None) -> Synthesis:
    return synthesise(model, TEXT, who, of or setting())


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
    assert len(speak(model, released, of=setting(speed=2.0)).samples) < len(said.samples)


@pytest.mark.slow
def test_disturbed_durations_are_alike_for_all_takes_of_a_text(
    model: MegaSpeech, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Random weights predict no length at all, of which nothing can be disturbed.
    monkeypatch.setattr(DurationModel, "predict", lambda self, heard, phones, tones, check: [61] * phones.shape[1])
    released = catalogue.voice("some_noise", MODEL, str(folder))

    def phones(**changes: object) -> list[int]:
        _, made = model.prepare("Another sentence.", released, setting(**changes).options, lambda: None)
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
    write_release(root, encoder=True, graphemes=False)
    shutil.copytree(folder / "g2p", root / "g2p", dirs_exist_ok=True)
    model = official.load(MODEL, root)
    said = speak(model, Voice("own", "Own", str(write_voice(tmp_path / "mine.wav", latents=False)), ""))
    assert np.abs(said.samples).max() > 0


def test_without_transformers_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_release(tmp_path / MODEL, graphemes=False)
    monkeypatch.setitem(sys.modules, "transformers", None)
    official.refused(MODEL, tmp_path / MODEL, r"pip install 'paretone\[megatts3\]")


def test_a_release_without_voices_says_where_to_put_them(tmp_path: Path) -> None:
    assert catalogue.voices(MODEL, str(tmp_path)) == ()
    write_voice(tmp_path / "voices" / "incomplete.wav", latents=False)
    assert catalogue.voices(MODEL, str(tmp_path)) == ()
    with pytest.raises(SettingError, match=r"there is none yet\).*name\.wav and name\.npy\) into .*voices"):
        catalogue.voice("", MODEL, str(tmp_path))
    write_voice(tmp_path / "voices" / "anna.wav")
    with pytest.raises(SettingError, match=r"no voice named 'nobody' \(known voices: anna\)"):
        catalogue.voice("nobody", MODEL, str(tmp_path))
