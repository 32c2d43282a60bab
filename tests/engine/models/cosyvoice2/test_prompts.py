"""Prompts as tokens, features and a speaker; texts in passages."""

import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from paretone.errors import AudioError, CheckpointError, TextError
from paretone.models.base import Voice
from paretone.models.cosyvoice2 import text
from paretone.models.cosyvoice2.config import CROSS_LINGUAL, INSTRUCT, USUAL_TOKENS, ZERO_SHOT
from paretone.models.cosyvoice2.front_end import VoicePrompt, VoicePrompts, prepare
from paretone.models.cosyvoice2.speech_tokenizer import SPEAKER, TOKENIZER, RecordingEncoder
from paretone.models.cosyvoice2.text import ADDED, END_OF_PROMPT, NUMBERS_NOTE, TextTokenizer, read_text
from paretone.models.cosyvoice2.token_to_mel import AcousticPrompt
from tests.engine.models.cosyvoice2.small_release import write_recording_encoder, write_tokenizer
from tests.engine.models.official import write_noise

CODES, WIDTH = 100, 24


@pytest.fixture
def release(tmp_path: Path) -> Path:
    pytest.importorskip("onnxruntime")
    pytest.importorskip("onnx")
    write_recording_encoder(tmp_path / "release", CODES, WIDTH)
    return tmp_path / "release"


@pytest.fixture
def audio(tmp_path: Path) -> Path:
    return write_noise(tmp_path / "voice.wav", seconds=1.7)


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
    prompts(write_noise(tmp_path / "other.wav", 1.7, seed=1))
    assert encoder.heard == 2


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
    with pytest.raises(AudioError, match=r"lasts 31 s, but CosyVoice takes at most 30 s"):
        prompts(write_noise(tmp_path / "long.wav", 31, 8000))


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


TOKENS = 60
HEARD = VoicePrompt(
    AcousticPrompt(torch.arange(TOKENS)[None], torch.zeros(1, 2 * TOKENS, 80), torch.ones(1, 24)), 2.4, ("Noted.",)
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("tokenizers")
    folder = tmp_path_factory.mktemp("blank")
    write_tokenizer(folder)
    return folder


@pytest.fixture(scope="module")
def tokenizer(folder: Path) -> TextTokenizer:
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


@pytest.mark.parametrize(
    ("text", "mode", "instruction", "problem"),
    [
        ("Softly.<|endofprompt|>Hello.", ZERO_SHOT, "", "option “Instruction”, and choose “With an instruction”"),
        ("Hello.", INSTRUCT, "Softly.<|endofprompt|>", "inserted automatically; leave it out"),
        ("Hello.", INSTRUCT, " ", "There is no instruction; write how to speak"),
        (" ", ZERO_SHOT, "", "no text to speak"),
    ],
)
def test_texts_that_do_not_go_with_the_mode_are_refused(
    tokenizer: TextTokenizer, text: str, mode: str, instruction: str, problem: str
) -> None:
    with pytest.raises(TextError, match=problem):
        prepare(text, mode, instruction, voice(), HEARD, tokenizer)


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


def words(piece: str) -> int:
    return len(piece.split())


@pytest.fixture
def without_wetext(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "wetext", None)


@pytest.mark.usefixtures("without_wetext")
@pytest.mark.parametrize(
    ("given", "spoken"),
    [
        ("It costs $3.50.", "It costs three dollars and fifty cents."),
        ("In 1998 it grew by 1.5%.", "In nineteen ninety eight it grew by one point five percent."),
    ],
)
def test_what_upstream_would_cut_or_misread_is_read_by_our_rules(given: str, spoken: str) -> None:
    assert read_text(given, words) == text.ReadText((spoken,), (NUMBERS_NOTE,))


@pytest.mark.usefixtures("without_wetext")
def test_decimals_in_chinese_stay_in_one_piece() -> None:
    assert read_text("气温是1.5度.", words).pieces == ("气温是1点5度。",)


@pytest.mark.parametrize(("given", "problem"), [(" \n", "no text"), ("?!…", "only punctuation")])
def test_texts_without_anything_to_speak_are_refused(given: str, problem: str) -> None:
    with pytest.raises(TextError, match=problem):
        read_text(given, words)


def test_marks_of_the_model_are_left_alone() -> None:
    given = "<|en|> 12, [laughter] and $3.50. Really. " * 20
    assert read_text(given, words).pieces == (given,)
    assert read_text("Well [laughter] <strong>no</strong>!", words).pieces == ("Well [laughter] <strong>no</strong>!",)


def test_wetext_is_used_where_it_is_installed() -> None:
    spoken = "It costs three point five dollars for two."
    assert read_text("It costs $3.50 for 2.", words) == text.ReadText((spoken,))
    # Some versions leave interjections out unless told otherwise.
    assert read_text("嗯，1.5度。", words).pieces == ("嗯，一点五度。",)


TEXTS = (
    "hello, the world's other 1234 things",
    "  two  blanks\n\nand lines ",
    "cafe\u0301 caf\u00e9 naïve",
    "你好，世界。こんにちは 안녕",
    f"Say it with a smile.{END_OF_PROMPT}Well [laughter] then <strong>now</strong>!",
    "[laughter][breath] [mn]<|im_start|>",
    "I'M they'LL",
    "",
)


def test_ids_are_those_of_transformers(folder: Path, tokenizer: TextTokenizer) -> None:
    official = pytest.importorskip("transformers").Qwen2TokenizerFast.from_pretrained(folder)
    official.add_tokens(list(ADDED), special_tokens=True)
    for one in TEXTS:
        assert tokenizer.encode(one) == official(one)["input_ids"], one
    assert tokenizer.count("hello") == 1


@pytest.mark.parametrize("name", ["vocab.json", "merges.txt"])
def test_a_tokenizer_that_is_missing_or_damaged_is_named(tmp_path: Path, name: str) -> None:
    pytest.importorskip("tokenizers")
    write_tokenizer(tmp_path)
    (tmp_path / name).write_text("{", encoding="utf-8")
    with pytest.raises(CheckpointError, match="cannot be read"):
        TextTokenizer.load(tmp_path)
    (tmp_path / name).unlink()
    with pytest.raises(CheckpointError, match=rf"{name} is missing"):
        TextTokenizer.load(tmp_path)


def test_a_table_that_is_too_small_is_refused(tokenizer: TextTokenizer) -> None:
    tokenizer.require_rows(tokenizer.size, "the table")
    with pytest.raises(CheckpointError, match="do not belong together"):
        tokenizer.require_rows(tokenizer.size - 1, "the table")
