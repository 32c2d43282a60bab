from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from paretone.audio.recording import Recording
from paretone.errors import AudioError
from paretone.files import wav
from paretone.measure.loudness import integrated_loudness
from paretone.models.megatts3.front_end import PromptRecording, prepare_recording, prepare_voice, read_latents
from paretone.models.megatts3.wavvae import Encoder, WavVAE
from tests.engine.models.megatts3.small_release import SMALL_WAVVAE

WINDOW = 1200


def recording(samples: int, rate: int = 24000) -> Recording:
    noise = np.random.default_rng(0).standard_normal(samples) * 0.1
    return Recording(noise.astype(np.float32), rate)


@pytest.fixture
def prompt() -> PromptRecording:
    return prepare_recording(recording(60000), WINDOW)


@pytest.fixture
def audio(tmp_path: Path) -> Path:
    path = tmp_path / "voice.wav"
    path.write_bytes(wav(recording(60000).samples, 24000))
    return path


def latents(count: int, dtype: object = np.float32) -> np.ndarray:
    return np.random.default_rng(1).standard_normal((1, count, 32)).astype(dtype)


def test_recordings_are_filled_up_as_upstream_does() -> None:
    for samples in (1198, 1199, 1200, 155178, 60000):
        padded = len(prepare_recording(recording(samples), WINDOW).samples) - 12000
        assert padded % WINDOW == WINDOW - 1
        assert 0 <= padded - samples < WINDOW


def test_the_english_sample_of_the_release_has_174_latents() -> None:
    assert prepare_recording(recording(155178), WINDOW).latents == 174


def test_other_rates_are_converted_and_the_silence_counts_for_loudness(prompt: PromptRecording) -> None:
    converted = prepare_recording(recording(110250, 44100), WINDOW)
    assert len(converted.samples) == len(prompt.samples)
    assert prompt.lufs == integrated_loudness(prompt.samples, 24000).lufs
    assert len(prompt.for_aligner()) // 160 // 8 * 8 == prompt.frames


@pytest.mark.parametrize("shape", [(1, -1, 32), (-1, 32)])
@pytest.mark.parametrize("spare", [0, 1, 2])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, ">f4"])
def test_latents_are_read_and_cut(
    prompt: PromptRecording, audio: Path, shape: tuple[int, ...], spare: int, dtype: object
) -> None:
    path = audio.with_suffix(".npy")
    stored = latents(prompt.latents + spare, dtype)
    np.save(path, stored.reshape(shape))
    found = read_latents(path, prompt, audio)
    assert found.dtype == torch.float32
    assert np.array_equal(found.numpy(), stored[:, : prompt.latents].astype(np.float32))


@pytest.mark.parametrize("count", [20, -1, 3, 4000])
def test_latents_of_another_recording_are_refused_with_both_numbers(
    prompt: PromptRecording, audio: Path, count: int
) -> None:
    stored = prompt.latents + count if count in (-1, 3) else count
    np.save(audio.with_suffix(".npy"), latents(stored))
    with pytest.raises(
        AudioError, match=rf"has {stored} latents .*voice\.wav needs {prompt.latents} .*belong together"
    ):
        read_latents(audio.with_suffix(".npy"), prompt, audio)


@pytest.mark.parametrize(
    ("array", "words"),
    [
        (np.zeros((1, 32, 77), np.float32), "the shape 1 × 32 × 77"),
        (np.zeros((2, 77, 32), np.float32), "the shape 2 × 77 × 32"),
        (np.zeros(32, np.float32), "the shape 32;"),
        (np.float32(1), "the shape one number"),
        (np.zeros((0, 32), np.float32), "has 0 latents"),
        (np.zeros((1, 77, 32), np.int64), "of the type int64"),
        (np.zeros((1, 77, 32), np.complex64), "of the type complex64"),
        (np.full((1, 77, 32), np.nan, np.float32), "not numbers"),
        (np.full((1, 77, 32), np.inf, np.float32), "not numbers"),
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
    np.savez(path.with_suffix(".npz"), latents(5))
    path.with_suffix(".npz").replace(path)
    with pytest.raises(AudioError, match="archive"):
        read_latents(path, prompt, audio)
    for content in (b"", b"RIFF", b"PK\x03\x04", b"\x93NUMPY\x01\x00\x10\x00{'descr': '<f4', "):
        path.write_bytes(content)
        with pytest.raises(AudioError, match="not a file of latents"):
            read_latents(path, prompt, audio)
    np.save(path, latents(prompt.latents))
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(AudioError, match="not a file of latents"):
        read_latents(path, prompt, audio)


def test_a_voice_is_a_recording_and_its_latents(prompt: PromptRecording, audio: Path) -> None:
    np.save(audio.with_suffix(".npy"), latents(prompt.latents))
    voice = prepare_voice(audio, WINDOW, WavVAE(SMALL_WAVVAE))
    assert voice.latents.shape == (1, prompt.latents, 32)
    assert voice.recording.latents == prompt.latents


def test_a_recording_alone_is_refused_with_the_reason_and_what_to_do(audio: Path) -> None:
    with pytest.raises(AudioError) as raised:
        prepare_voice(audio, WINDOW, WavVAE(SMALL_WAVVAE))
    for part in ("public release of MegaTTS 3 has no encoder", "voice.npy is missing", "wavvae/model_only_last.ckpt"):
        assert part in str(raised.value)


def test_with_an_encoder_a_recording_alone_is_enough(audio: Path, prompt: PromptRecording) -> None:
    wavvae = WavVAE(SMALL_WAVVAE, Encoder(4, 16)).eval()
    voices = [prepare_voice(audio, WINDOW, wavvae, torch.Generator().manual_seed(seed)) for seed in (1, 1, 2)]
    assert voices[0].latents.shape == (1, prompt.latents, 32)
    assert torch.equal(voices[0].latents, voices[1].latents)
    assert not torch.equal(voices[0].latents, voices[2].latents)
