"""Recordings made ready: heard by real ONNX models, remembered in memory and on disk by what they hold."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from paretone.errors import AudioError, Cancelled, CheckpointError
from paretone.files import wav
from paretone.models.cosyvoice2.front_end import VoicePrompts
from paretone.models.cosyvoice2.speech_tokenizer import SPEAKER, TOKENIZER, RecordingEncoder
from tests.engine.models.cosyvoice2.small_recording_encoder import write_recording_encoder

CODES, WIDTH = 100, 24


@pytest.fixture
def release(tmp_path: Path) -> Path:
    pytest.importorskip("onnxruntime")
    pytest.importorskip("onnx")
    write_recording_encoder(tmp_path / "release", CODES, WIDTH)
    return tmp_path / "release"


@pytest.fixture
def audio(tmp_path: Path) -> Path:
    return write_recording(tmp_path / "voice.wav", seconds=1.7)


def write_recording(path: Path, seconds: float, rate: int = 24000, seed: int = 0) -> Path:
    noise = np.random.default_rng(seed).standard_normal(round(seconds * rate)) * 0.1
    path.write_bytes(wav(noise.astype(np.float32), rate))
    return path


class CountingEncoder(RecordingEncoder):
    """Counts how often a recording is really heard."""

    heard = 0

    def tokens(self, samples: torch.Tensor) -> np.ndarray:
        self.heard += 1
        return super().tokens(samples)


def test_a_recording_is_made_ready(release: Path, audio: Path, tmp_path: Path) -> None:
    prompt = VoicePrompts(RecordingEncoder(release), CODES, WIDTH, tmp_path / "cache")(audio)
    acoustic = prompt.acoustic
    # 1.7 s: 170 frames to hear by, 85 mel frames; 42 tokens have frames for both clocks.
    assert acoustic.tokens.shape == (1, 42) and acoustic.tokens.dtype == torch.int64
    assert acoustic.mel.shape == (1, 84, 80) and acoustic.speaker.shape == (1, WIDTH)
    assert set(prompt.tokens) <= set(range(CODES)) and len(set(prompt.tokens)) > 1
    assert prompt.seconds == pytest.approx(1.7)


def test_a_recording_is_heard_once_for_all(release: Path, audio: Path, tmp_path: Path) -> None:
    encoder = CountingEncoder(release)
    prompts = VoicePrompts(encoder, CODES, WIDTH, tmp_path / "cache")
    first = prompts(audio)
    # Equal content under another name is the same voice.
    again = audio.with_name("copy.wav")
    again.write_bytes(audio.read_bytes())
    assert prompts(again) is first and encoder.heard == 1
    fresh = VoicePrompts(encoder, CODES, WIDTH, tmp_path / "cache")(audio)
    assert encoder.heard == 1
    assert fresh.tokens == first.tokens
    assert torch.equal(fresh.acoustic.speaker, first.acoustic.speaker)
    assert torch.equal(fresh.acoustic.mel, first.acoustic.mel)
    prompts(write_recording(tmp_path / "other.wav", 1.7, seed=1))
    assert encoder.heard == 2


def test_another_model_hears_again(release: Path, audio: Path, tmp_path: Path) -> None:
    first = VoicePrompts(RecordingEncoder(release), CODES, WIDTH, tmp_path / "cache")(audio)
    write_recording_encoder(tmp_path / "other", 50, WIDTH)
    encoder = CountingEncoder(tmp_path / "other")
    assert VoicePrompts(encoder, CODES, WIDTH, tmp_path / "cache")(audio).tokens != first.tokens
    assert encoder.heard == 1


def test_a_damaged_memory_is_no_harm(release: Path, audio: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    first = VoicePrompts(RecordingEncoder(release), CODES, WIDTH, cache)(audio)
    (kept,) = cache.iterdir()
    kept.write_bytes(kept.read_bytes()[:50])
    encoder = CountingEncoder(release)
    assert VoicePrompts(encoder, CODES, WIDTH, cache)(audio).tokens == first.tokens and encoder.heard == 1
    # A folder that cannot be written to is none either.
    blocked = tmp_path / "blocked"
    blocked.write_text("a file")
    assert VoicePrompts(encoder, CODES, WIDTH, blocked)(audio).tokens == first.tokens


def test_recordings_that_are_too_long_are_refused(release: Path, tmp_path: Path) -> None:
    prompts = VoicePrompts(RecordingEncoder(release), CODES, WIDTH, tmp_path / "cache")
    with pytest.raises(AudioError, match=r"lasts 31 s, but CosyVoice 2 takes at most 30 s"):
        prompts(write_recording(tmp_path / "long.wav", 31, 8000))


def test_tokens_beyond_the_language_model_are_refused(release: Path, audio: Path, tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="do not belong together"):
        VoicePrompts(RecordingEncoder(release), 3, WIDTH, tmp_path / "cache")(audio)
    with pytest.raises(CheckpointError, match=r"campplus\.onnx gives 24 numbers .* do not belong together"):
        VoicePrompts(RecordingEncoder(release), CODES, WIDTH + 1, tmp_path / "cache")(audio)


def test_what_is_missing_or_damaged_is_named(release: Path, audio: Path, tmp_path: Path) -> None:
    (release / SPEAKER).write_bytes(b"no protocol buffer")
    with pytest.raises(CheckpointError, match=r"campplus\.onnx cannot be used"):
        VoicePrompts(RecordingEncoder(release), CODES, WIDTH, tmp_path / "cache")(audio)
    (release / TOKENIZER).unlink()
    with pytest.raises(CheckpointError, match=r"speech_tokenizer_v2\.onnx is missing"):
        RecordingEncoder(release)


def test_encoding_can_be_cancelled(release: Path, audio: Path, tmp_path: Path) -> None:
    def cancel() -> None:
        raise Cancelled

    with pytest.raises(Cancelled):
        VoicePrompts(RecordingEncoder(release), CODES, WIDTH, tmp_path / "cache")(audio, cancel)


def test_without_the_package_the_extra_is_named(release: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(CheckpointError, match=r"pip install 'paretone\[cosyvoice\]"):
        RecordingEncoder(release)
