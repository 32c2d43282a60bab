"""From text to phones and passages."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from paretone.errors import AudioError, Cancelled, CheckpointError, TextError
from paretone.files import wav
from paretone.measure.loudness import integrated_loudness
from paretone.models.megatts3 import front_end as reading
from paretone.models.megatts3 import graphemes
from paretone.models.megatts3.adapter import hann_fade, level_matched, segment_fader
from paretone.models.megatts3.checkpoint import OfficialFolder
from paretone.models.megatts3.duration_model import Tempo
from paretone.models.megatts3.front_end import OfficialFrontEnd, read_text, split_chinese
from paretone.models.megatts3.graphemes import END, GraphemeModel
from paretone.models.megatts3.phones import (
    ENGLISH_TONE,
    FIRST_CHINESE,
    LAST_CHINESE,
    PHONES,
    TONES_OF_CHINESE,
    UNKNOWN,
    MegaPassage,
    Timed,
    durations_of_phones,
    frames_of_phones,
    joined,
    separated,
    tones_for_speech,
)
from tests.engine.models.megatts3.small_release import FIRST, write_folder, write_release
from tests.packages import needs

pytestmark = needs("transformers")
TEXT = "this clause has quite a few words in it, " * 4 + "and so has this one."


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> OfficialFolder:
    root = tmp_path_factory.mktemp("release")
    write_release(root)
    write_folder(root / "g2p")
    return OfficialFolder(root)


@pytest.fixture
def front_end(folder: OfficialFolder, monkeypatch: pytest.MonkeyPatch) -> OfficialFrontEnd:
    monkeypatch.setattr(graphemes, "LONGEST", 12)
    return OfficialFrontEnd.load(folder, folder.wavvae())


@pytest.fixture
def voice(tmp_path: Path) -> Path:
    audio = tmp_path / "voice.wav"
    random = np.random.default_rng(0)
    audio.write_bytes(wav((random.standard_normal(40000) * 0.1).astype(np.float32), 24000))
    np.save(audio.with_suffix(".npy"), random.standard_normal((1, 55, 32)).astype(np.float32))
    return audio


def test_a_prompt_is_as_long_as_its_latents(front_end: OfficialFrontEnd, voice: Path) -> None:
    prompt = front_end.prompt(voice)
    # 40000 samples, filled up to 40799, and 12000 more: 220 frames, 216 in eights.
    assert (prompt.frames, prompt.spoken.frames) == (54, 216)
    assert prompt.latents.shape == (1, prompt.frames, 32)
    assert prompt.seconds == pytest.approx(40000 / 24000)


def test_every_segment_follows_the_prompt(front_end: OfficialFrontEnd, voice: Path) -> None:
    prompt = front_end.prompt(voice)
    made = front_end.passages(TEXT, voice)
    assert [passage.text for passage in made.passages] == [TEXT[:122], TEXT[123:]]
    for passage in made.passages:
        assert passage.mel2ph.shape == (1, 4 * passage.frames)
        assert passage.phones.shape == passage.tones.shape
        assert int(passage.mel2ph.max()) == passage.phones.shape[1]
        assert (passage.mel2ph.diff() >= 0).all()
        heard = len(prompt.spoken.phones)
        assert passage.phones[0, :heard].tolist() == list(prompt.spoken.phones)
        assert passage.phones[0, heard] == 145
        # The target begins where the prompt's latents end.
        assert (passage.mel2ph[0, : 4 * prompt.frames] <= heard).all()
        assert passage.mel2ph[0, 4 * prompt.frames] > heard
        assert passage.frames > prompt.frames
    # The very first silence is short.
    first = made.passages[0].mel2ph[0, 4 * prompt.frames :]
    assert int((first == len(prompt.spoken.phones) + 1).sum()) == 8


def test_the_backbone_takes_what_the_front_end_makes(
    front_end: OfficialFrontEnd, folder: OfficialFolder, voice: Path
) -> None:
    prompt = front_end.prompt(voice)
    passage = front_end.passages("Hello.", voice).passages[0]
    backbone, wavvae = folder.backbone(), folder.wavvae()
    context = torch.nn.functional.pad(prompt.latents, (0, 0, 0, passage.frames - prompt.frames))
    is_prompt = (torch.arange(passage.frames) < prompt.frames)[None]
    with torch.inference_mode():
        run = backbone.begin(context, is_prompt, passage.phones, passage.tones, passage.mel2ph, np.array([0.0]))
        velocities = backbone.velocity(torch.randn(1, passage.frames, 32), 0, run)
    assert velocities.shape == (3, passage.frames, 32)
    assert velocities.isfinite().all()
    samples = wavvae.decode(velocities[:1], prompt.frames)
    assert samples.shape == (1, 960 * (passage.frames - prompt.frames))


def test_equal_requests_are_equal_and_a_disturbance_follows_its_seed(front_end: OfficialFrontEnd, voice: Path) -> None:
    def frames(seed: int, disturbance: float = 0.0) -> list[list[int]]:
        made = front_end.passages(TEXT, voice, Tempo(disturbance=disturbance), seed)
        return [passage.mel2ph[0].tolist() for passage in made.passages]

    assert frames(1) == frames(2)
    assert frames(1, 0.5) == frames(1, 0.5)
    assert frames(1, 0.5) != frames(2, 0.5)


def test_segments_and_voices_are_remembered_until_a_file_changes(
    front_end: OfficialFrontEnd, voice: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = front_end.prompt(voice)
    made = front_end.passages("Hello.", voice)
    with monkeypatch.context() as patch:
        for part in (front_end._graphemes, front_end._aligner):
            patch.setattr(type(part), "__call__" if part is front_end._graphemes else "align", None)
        assert front_end.prompt(voice) is first
        again = front_end.passages("Hello.", voice)
        assert torch.equal(again.passages[0].mel2ph, made.passages[0].mel2ph)
    os.utime(voice.with_suffix(".npy"), ns=(1, 1))
    assert front_end.prompt(voice) is not first


def test_what_was_not_read_to_its_end_is_said(front_end: OfficialFrontEnd, voice: Path) -> None:
    assert any("did not finish reading “hello" in note.lower() for note in front_end.passages("Hello.", voice).notes)


def test_sounds_without_a_phone_are_counted(front_end: OfficialFrontEnd, voice: Path) -> None:
    head = front_end._graphemes._model.lm_head.weight
    with torch.no_grad():  # English phones, and numbers that no phone has, remain likely.
        head[: FIRST + 101] = 0
        head[FIRST + 145 : FIRST + 174] = 0
        head[FIRST + 200 : FIRST + 789] = 0
        head[FIRST + graphemes.END] = 0
    read = front_end._graphemes("Hello.")
    notes = front_end.passages("Hello.", voice).notes
    assert 1 < read.unknown < len(read.phones)
    assert any(f"no phones for {read.unknown} sounds of “Hello.”" in note for note in notes)


def test_errors_of_parts_come_through_and_cancelling_works(front_end: OfficialFrontEnd, voice: Path) -> None:
    def cancel() -> None:
        raise Cancelled

    with pytest.raises(TextError):
        front_end.passages("", voice)
    with pytest.raises(Cancelled):
        front_end.passages("Hello.", voice, check=cancel)
    voice.with_suffix(".npy").unlink()
    with pytest.raises(AudioError, match="no encoder"):
        front_end.prompt(voice)


def test_a_last_latent_that_is_not_full_is_left_out() -> None:
    passage = MegaPassage.of("", Timed((145,), (3,), (8,)), Timed((101, 5), (3, 16), (3, 4)))
    assert passage.frames == 3
    assert passage.mel2ph.tolist() == [[1] * 8 + [2] * 3 + [3]]
    assert passage.tones.tolist() == [[3, 3, 3]]


# --- The grapheme model -----------------------------------------------------------------------------------------------
SPOKEN_TEXT = "Hello, 世界."


@pytest.fixture(scope="module")
def grapheme_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("g2p")
    write_folder(made)
    return made


@pytest.fixture
def model(grapheme_folder: Path) -> GraphemeModel:
    return GraphemeModel.load(grapheme_folder)


def end_soon(model: GraphemeModel, monkeypatch: pytest.MonkeyPatch, limit: int) -> list[int]:
    """Let no more than ``limit`` tokens be written; returns those of the likeliest, one evaluation of all for each."""
    monkeypatch.setattr(graphemes, "LONGEST", limit)
    found = model.prompt(SPOKEN_TEXT)
    given = len(found)
    with torch.inference_mode():
        while len(found) < given + limit and found[-1] != FIRST + END:
            found.append(int(model._model(input_ids=torch.tensor([found])).logits[0, -1].argmax()))
    return [token - FIRST for token in found[given - 1 :]]


def test_the_prompt_is_text_between_its_marks_and_silence(model: GraphemeModel) -> None:
    prompt = model.prompt("ab")
    assert prompt[0] == 256
    assert prompt[-2:] == [257, FIRST + 145]
    assert len(prompt) == 5


def test_phones_are_those_of_the_likeliest_tokens(model: GraphemeModel, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = end_soon(model, monkeypatch, 12)
    read = model(SPOKEN_TEXT)
    assert not read.finished
    assert list(zip(read.phones, read.tones, strict=True)) == [separated(token) for token in expected]
    assert read.phones[0] == 145
    assert len(read.phones) == 13


def test_the_end_token_ends_and_is_no_phone(model: GraphemeModel, monkeypatch: pytest.MonkeyPatch) -> None:
    written = end_soon(model, monkeypatch, 6)
    head = model._model.lm_head.weight
    with torch.no_grad():  # What was the fourth token is now less likely than the end.
        head[FIRST + END] = 2 * head[FIRST + written[4]]
    expected = end_soon(model, monkeypatch, 12)
    read = model(SPOKEN_TEXT)
    assert expected[-1] == END
    assert read.finished
    assert list(read.phones) == [separated(token)[0] for token in expected[:-1]]


def test_reading_is_repeatable_and_can_be_cancelled(model: GraphemeModel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graphemes, "LONGEST", 8)
    calls = []

    def check() -> None:
        calls.append(None)
        if len(calls) == 3:
            raise Cancelled

    assert model(SPOKEN_TEXT) == model(SPOKEN_TEXT)
    with pytest.raises(Cancelled):
        model(SPOKEN_TEXT, check)
    assert len(calls) == 3


def test_no_phones_are_the_texts_fault(model: GraphemeModel) -> None:
    with torch.no_grad():
        model._model.lm_head.weight[FIRST:] = 0
        model._model.model.norm.weight.zero_()
        model._model.lm_head.weight[FIRST + END] = 0
    # All scores are equal now: the first token wins, which is no phone.
    with pytest.raises(TextError, match="found no phones"):
        model("?")


def test_folders_that_are_not_complete_or_of_another_model_are_named(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"config\.json is missing"):
        GraphemeModel.load(tmp_path)
    write_folder(tmp_path / "a", without="<Reserved_TTS_0>")
    with pytest.raises(CheckpointError, match="lacks <Reserved_TTS_0>"):
        GraphemeModel.load(tmp_path / "a")
    write_folder(tmp_path / "b", speech=700)
    with pytest.raises(CheckpointError, match="lacks the tokens of phones"):
        GraphemeModel.load(tmp_path / "b")
    weights = load_file(tmp_path / "b/model.safetensors")
    for changed, words in (
        (
            {name: value for name, value in weights.items() if name != "model.norm.weight"},
            r"missing: model\.norm\.weight",
        ),
        (weights | {"surplus": torch.zeros(1)}, "unknown: surplus"),
    ):
        save_file(changed, tmp_path / "b/model.safetensors", metadata={"format": "pt"})
        with pytest.raises(CheckpointError, match=words):
            GraphemeModel.load(tmp_path / "b")
    (tmp_path / "b/model.safetensors").unlink()
    with pytest.raises(CheckpointError, match=r"no \.safetensors"):
        GraphemeModel.load(tmp_path / "b")
    (tmp_path / "b/model.safetensors").write_bytes(b"not weights")
    with pytest.raises(CheckpointError, match=r"model\.safetensors is damaged"):
        GraphemeModel.load(tmp_path / "b")


# --- The table of phones ----------------------------------------------------------------------------------------------
def test_every_chinese_phone_with_every_tone_has_a_token_of_its_own() -> None:
    pairs = [(phone, tone) for phone in range(FIRST_CHINESE, LAST_CHINESE + 1) for tone in TONES_OF_CHINESE]
    tokens = [joined(*pair) for pair in pairs]
    assert tokens == list(range(201, 789))
    assert [separated(token) for token in tokens] == pairs


@pytest.mark.parametrize("phone", [101, 145, 173, 0])
def test_other_phones_are_their_own_tokens_with_the_english_tone(phone: int) -> None:
    assert separated(joined(phone, 17)) == (phone, ENGLISH_TONE)


@pytest.mark.parametrize("token", [174, 199, 789, 6799, -5])
def test_tokens_that_are_no_phone_are_unknown(token: int) -> None:
    assert separated(token) == (UNKNOWN, ENGLISH_TONE)
    assert PHONES[UNKNOWN] == "<UNK>"


def test_tones_that_are_not_chinese_are_the_english_one() -> None:
    assert tones_for_speech([0, 3, 4, 5, 10, 11, 15, 16]) == [0, 3, 4, 3, 3, 11, 15, 3]


def test_frames_and_durations_are_inverse() -> None:
    durations = [3, 0, 2, 1, 0]
    frames = frames_of_phones(durations)
    assert frames.tolist() == [1, 1, 1, 3, 3, 4]
    assert durations_of_phones(frames, 5).tolist() == durations
    assert durations_of_phones(np.array([0, 1, 0]), 2).tolist() == [1, 0]


# --- Segments ---------------------------------------------------------------------------------------------------------
RATE = 24000


@pytest.fixture
def speech() -> np.ndarray:
    """Noise whose level rises and falls about four times a second."""
    samples = np.random.default_rng(0).standard_normal(3 * RATE) * 0.05
    return (samples * (1 + np.sin(np.arange(len(samples)) * 2 * np.pi * 4 / RATE))).astype(np.float32)


@pytest.mark.parametrize("lufs", [-40.0, -30.0, -26.0])
def test_a_segment_becomes_as_loud_as_the_prompt_by_the_official_meter(speech: np.ndarray, lufs: float) -> None:
    import pyloudnorm  # Here, for it brings scipy.

    matched = level_matched(speech, lufs, RATE)
    assert matched.dtype == np.float32
    assert integrated_loudness(matched, RATE).lufs == pytest.approx(lufs, abs=1e-3)
    assert pyloudnorm.Meter(RATE).integrated_loudness(matched.astype(float)) == pytest.approx(lufs, abs=0.1)


def test_what_would_clip_is_lowered(speech: np.ndarray) -> None:
    assert np.abs(level_matched(speech, -3.0, RATE)).max() == pytest.approx(0.95)


def test_silence_stays_silent() -> None:
    silence = np.zeros(RATE, np.float32)
    assert np.array_equal(level_matched(silence, -20.0, RATE), silence)
    assert np.array_equal(level_matched(silence + 0.1, -np.inf, RATE), silence + np.float32(0.1))


def test_segments_fade_over_160_milliseconds() -> None:
    fader = segment_fader(RATE)
    assert fader.fade == 3840
    ones = np.ones(RATE, np.float32)
    joined = np.concatenate([fader.push(ones), fader.push(ones), fader.finish()])
    assert len(joined) == 2 * RATE - 3840
    assert joined == pytest.approx(1.0, abs=1e-3)


def test_short_segments_fade_over_what_they_have() -> None:
    fader = segment_fader(RATE)
    joined = np.concatenate(
        [fader.push(np.ones(RATE, np.float32)), fader.push(np.ones(100, np.float32)), fader.finish()]
    )
    assert len(joined) == RATE
    falling, rising = hann_fade(100)
    assert falling[0] > 0.99
    assert rising[0] == 0


# --- Texts ------------------------------------------------------------------------------------------------------------
GERMAN = "Der schnelle braune Fuchs springt über den faulen Hund und läuft dann in den Wald."


@pytest.fixture
def without_official_normaliser(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on machines that lack WeTextProcessing."""
    for name in ("tn", "tn.english", "tn.english.normalizer", "tn.chinese", "tn.chinese.normalizer"):
        monkeypatch.setitem(sys.modules, name, None)
    reading._official_normaliser.cache_clear()
    yield
    reading._official_normaliser.cache_clear()


@pytest.mark.usefixtures("without_official_normaliser")
def test_other_languages_are_refused_with_those_that_are_spoken() -> None:
    with pytest.raises(TextError, match="looks like German, but MegaTTS 3 speaks only English and Chinese"):
        read_text(GERMAN)


@pytest.mark.usefixtures("without_official_normaliser")
@pytest.mark.parametrize("nothing", ["", "  \n", "...", "🙂"])
def test_nothing_to_speak_is_an_error(nothing: str) -> None:
    with pytest.raises(TextError, match=r"no text|can be spoken"):
        read_text(nothing)


@pytest.mark.usefixtures("without_official_normaliser")
def test_english_is_written_out_and_the_user_is_told_by_whose_rules() -> None:
    read = read_text("It costs $5.")
    assert read.segments == ("It costs five dollars.",)
    assert len(read.notes) == 1
    assert "WeTextProcessing" in read.notes[0]
    assert read_text("It costs five dollars.").notes == ()


@pytest.mark.usefixtures("without_official_normaliser")
def test_dropped_characters_are_named() -> None:
    assert any("🙂" in note for note in read_text("How nice 🙂 that is.").notes)


@pytest.mark.usefixtures("without_official_normaliser")
def test_numbers_in_chinese_are_left_and_said_so() -> None:
    read = read_text("今年是2024年。")
    assert read.segments == ("今年是2024年。",)
    assert "WeTextProcessing" in read.notes[0]
    assert read_text("今年很好。").notes == ()


@pytest.mark.usefixtures("without_official_normaliser")
def test_the_official_normaliser_is_used_where_it_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    class Normalizer:
        def __init__(self, **options: object) -> None:
            self.options = options

        def normalize(self, sentence: str) -> str:
            return f"officially, {sentence} {sorted(self.options)}"

    for language in ("english", "chinese"):
        module = ModuleType(f"tn.{language}.normalizer")
        module.Normalizer = Normalizer
        monkeypatch.setitem(sys.modules, f"tn.{language}.normalizer", module)
        monkeypatch.setitem(sys.modules, f"tn.{language}", ModuleType(f"tn.{language}"))
    monkeypatch.setitem(sys.modules, "tn", ModuleType("tn"))
    assert read_text("It costs $5").segments == ("officially, It costs $5 ['overwrite_cache']",)
    assert "remove_erhua" in read_text("今年是2024年").segments[0]
    assert read_text("It costs $5").notes == ()


@pytest.mark.usefixtures("without_official_normaliser")
def test_english_is_cut_after_punctuation_at_130_bytes() -> None:
    clause = "this clause has some words in it, "
    segments = read_text(clause * 10).segments
    assert [len(segment) for segment in segments] == [len(clause) * 3 - 1] * 3 + [len(clause) - 1]


@pytest.mark.usefixtures("without_official_normaliser")
def test_what_the_grapheme_model_could_not_finish_is_cut_again() -> None:
    words = "word " * 200
    segments = read_text(words).segments
    assert all(len(segment) <= 300 for segment in segments)
    assert " ".join(segments).split() == words.split()
    mixed = read_text("好的" + " word" * 200).segments
    assert all(len(segment) <= 300 for segment in mixed)
    assert "".join(mixed).count("word") == 200


@pytest.mark.usefixtures("without_official_normaliser")
def test_chinese_is_cut_at_the_best_mark_near_by() -> None:
    han = "字"
    # A full stop a little further wins over a comma that is nearer, and over one before.
    assert split_chinese(han * 60 + "，" + han * 5 + "。" + han * 3) == [han * 60 + "，" + han * 5 + "。", han * 3]
    # Too far ahead, and none before: the comma.
    assert split_chinese(han * 60 + "，" + han * 40 + "。") == [han * 60 + "，", han * 40 + "。"]
    # A full stop before.
    assert split_chinese(han * 20 + "。" + han * 80) == [han * 20 + "。", han * 60, han * 20]
    # No mark at all: where the limit is.
    assert split_chinese(han * 130) == [han * 60, han * 60, han * 10]


@pytest.mark.usefixtures("without_official_normaliser")
def test_marks_become_full_width_but_not_within_numbers() -> None:
    assert split_chinese("你好,一共3.14元!行吗?12:30见.") == ["你好，一共3.14元！行吗？12:30见。"]


@pytest.mark.usefixtures("without_official_normaliser")
def test_nothing_is_lost_in_cutting_chinese() -> None:
    sentence = "香辣的，让你舌尖跳舞；有盐焗的。" * 40
    assert "".join(split_chinese(sentence)) == sentence
