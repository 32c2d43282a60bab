"""Prompts as tokens, features and a speaker; texts in passages."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from paretone.errors import AudioError, Cancelled, CheckpointError, TextError
from paretone.files import wav
from paretone.models.base import Voice
from paretone.models.cosyvoice2.config import CROSS_LINGUAL, INSTRUCT, USUAL_TOKENS, ZERO_SHOT
from paretone.models.cosyvoice2.front_end import VoicePrompt, VoicePrompts, prepare
from paretone.models.cosyvoice2.speech_tokenizer import SPEAKER, TOKENIZER, RecordingEncoder
from paretone.models.cosyvoice2.text import TextTokenizer
from paretone.models.cosyvoice2.token_to_mel import AcousticPrompt
from tests.engine.models.cosyvoice2.small_release import write_recording_encoder, write_tokenizer

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


TOKENS = 60
HEARD = VoicePrompt(
    AcousticPrompt(torch.arange(TOKENS)[None], torch.zeros(1, 2 * TOKENS, 80), torch.ones(1, 24)), 2.4, ("Noted.",)
)


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> TextTokenizer:
    pytest.importorskip("tokenizers")
    folder = tmp_path_factory.mktemp("blank")
    write_tokenizer(folder)
    return TextTokenizer.load(folder)


def voice(transcript: str = "What was said.") -> Voice:
    return Voice("own", "Own", str(Path("own.wav")), transcript)


def test_zero_shot_continues_the_recording(tokenizer: TextTokenizer) -> None:
    prompt, read = prepare("I have 2 cats", ZERO_SHOT, "", voice("Room 7."), HEARD, tokenizer)
    # Text and transcript are normalised alike.
    assert prompt.ids.text == tuple(tokenizer.encode("Room seven.")) and prompt.ids.speech == tuple(range(TOKENS))
    (passage,) = read.passages
    assert passage.text == "I have two cats." and passage.ids == tuple(tokenizer.encode("I have two cats."))
    assert passage.expected == round(TOKENS / len(prompt.ids.text) * len(passage.ids))
    assert prompt.notes == ("Noted.",) and read.notes == ()


def test_the_other_modes_take_only_the_voice(tokenizer: TextTokenizer) -> None:
    prompt, read = prepare("Hello.", CROSS_LINGUAL, "", voice(), HEARD, tokenizer)
    assert prompt.ids.text == prompt.ids.speech == () and prompt.voice is HEARD
    assert read.passages[0].expected == round(USUAL_TOKENS * len(read.passages[0].ids))
    prompt, read = prepare("I have 2 cats.", INSTRUCT, " Softly. ", voice(""), HEARD, tokenizer)
    assert prompt.ids.text == tuple(tokenizer.encode("Softly.<|endofprompt|>")) and prompt.ids.speech == ()
    assert [one.text for one in read.passages] == ["I have two cats."]


def test_digits_that_stay_digits_are_expected_as_words(tokenizer: TextTokenizer) -> None:
    # A text with a mark for the model is left as it is written.
    _, read = prepare("<|zh|>1984", CROSS_LINGUAL, "", voice(), HEARD, tokenizer)
    (passage,) = read.passages
    assert passage.ids == tuple(tokenizer.encode("<|zh|>1984"))
    assert passage.expected == round(USUAL_TOKENS * tokenizer.count("<|zh|>nineteen eighty four"))


@pytest.mark.parametrize(
    ("text", "mode", "instruction", "problem"),
    [
        ("Softly.<|endofprompt|>Hello.", ZERO_SHOT, "", "option “Instruction”, and choose “With an instruction”"),
        ("Hello.", INSTRUCT, "Softly.<|endofprompt|>", "inserted automatically; leave it out"),
        ("Hello.", INSTRUCT, " ", "There is no instruction; write how to speak"),
        (" ", INSTRUCT, "Softly.", "no text to speak"),
        (" ", ZERO_SHOT, "", "no text to speak"),
    ],
)
def test_texts_that_do_not_go_with_the_mode_are_refused(
    tokenizer: TextTokenizer, text: str, mode: str, instruction: str, problem: str
) -> None:
    with pytest.raises(TextError, match=problem):
        prepare(text, mode, instruction, voice(), HEARD, tokenizer)


def test_an_instruction_that_is_not_followed_is_noted(tokenizer: TextTokenizer) -> None:
    prompt, read = prepare("Hello.", CROSS_LINGUAL, "Softly.", voice(), HEARD, tokenizer)
    assert prompt.ids.text == ()
    assert read.notes == ("The instruction was ignored: choose the mode “With an instruction”.",)


def test_a_missing_transcript_is_asked_for(tokenizer: TextTokenizer) -> None:
    with pytest.raises(AudioError, match="type it, or choose the mode “Cross-lingual”") as refused:
        prepare("Hello.", ZERO_SHOT, "", voice(" "), HEARD, tokenizer)
    assert refused.value.lacks_transcript, "the command line says how to give it"


@pytest.mark.parametrize(
    ("transcript", "amount"), [("More than anybody says. " * 2, "long"), ("A", "short"), ("Just enough.", "")]
)
def test_a_transcript_that_cannot_be_what_is_said_is_noted(
    tokenizer: TextTokenizer, transcript: str, amount: str
) -> None:
    prompt, _ = prepare("A text of much the same length, or so.", ZERO_SHOT, "", voice(transcript), HEARD, tokenizer)
    found = [note for note in prompt.notes if "for the recording's 2.4 s" in note]
    assert [f"is too {amount} for" in note for note in found] == ([True] if amount else [])


def test_a_text_much_shorter_than_the_transcript_is_noted(tokenizer: TextTokenizer) -> None:
    _, read = prepare("Go on.", ZERO_SHOT, "", voice(), HEARD, tokenizer)
    assert any("much shorter than the recording's transcript" in note for note in read.notes)
