"""From text to phones and passages."""

import os
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from paretone.errors import AudioError, Cancelled, CheckpointError, TextError
from paretone.measure.loudness import integrated_loudness
from paretone.models.megatts3 import graphemes
from paretone.models.megatts3.adapter import level_matched
from paretone.models.megatts3.aligner import Aligner
from paretone.models.megatts3.checkpoint import OfficialFolder
from paretone.models.megatts3.front_end import OfficialFrontEnd, read_text, split_chinese
from paretone.models.megatts3.graphemes import END, GraphemeModel
from paretone.models.megatts3.phones import MegaPassage, Timed, separated
from tests.engine.models.megatts3.small_release import FIRST, write_folder, write_release, write_voice
from tests.engine.recorder import Follower
from tests.packages import needs

pytestmark = needs("transformers")
TEXT = "this clause has quite a few words in it, " * 4 + "and so has this one."


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> OfficialFolder:
    root = tmp_path_factory.mktemp("release")
    write_release(root)
    return OfficialFolder(root)


@pytest.fixture(scope="module")
def loaded(folder: OfficialFolder) -> OfficialFrontEnd:
    return OfficialFrontEnd.load(folder, folder.wavvae())


@pytest.fixture
def front_end(loaded: OfficialFrontEnd, monkeypatch: pytest.MonkeyPatch) -> OfficialFrontEnd:
    monkeypatch.setattr(graphemes, "LONGEST", 12)
    return loaded


@pytest.fixture
def voice(tmp_path: Path) -> Path:
    return write_voice(tmp_path / "voice.wav")


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


def test_segments_and_voices_are_remembered_until_a_file_changes(
    front_end: OfficialFrontEnd, voice: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = front_end.prompt(voice)
    made = front_end.passages("Hello.", voice)
    with monkeypatch.context() as patch:
        patch.setattr(GraphemeModel, "__call__", None)
        patch.setattr(Aligner, "align", None)
        assert front_end.prompt(voice) is first
        assert torch.equal(front_end.passages("Hello.", voice).passages[0].mel2ph, made.passages[0].mel2ph)
    os.utime(voice.with_suffix(".npy"), ns=(1, 1))
    assert front_end.prompt(voice) is not first


def test_sounds_without_a_phone_are_counted(
    folder: OfficialFolder, voice: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(graphemes, "LONGEST", 12)
    front_end = OfficialFrontEnd.load(folder, folder.wavvae())
    head = front_end.graphemes.network.lm_head.weight
    with torch.no_grad():  # English phones, and numbers that no phone has, remain likely.
        head[: FIRST + 101] = 0
        head[FIRST + 145 : FIRST + 174] = 0
        head[FIRST + 200 : FIRST + 789] = 0
        head[FIRST + graphemes.END] = 0
    read = front_end.graphemes("Hello.")
    notes = front_end.passages("Hello.", voice).notes
    assert 1 < read.unknown < len(read.phones)
    assert any(f"no phones for {read.unknown} sounds of “Hello.”" in note for note in notes)


def test_errors_of_parts_come_through_and_cancelling_works(front_end: OfficialFrontEnd, voice: Path) -> None:
    with pytest.raises(TextError):
        front_end.passages("", voice)
    with pytest.raises(Cancelled):
        front_end.passages("Hello.", voice, check=Follower(cancel_at=1).check)
    voice.with_suffix(".npy").unlink()
    with pytest.raises(AudioError) as raised:
        front_end.prompt(voice)
    for part in ("public release of MegaTTS 3 has no encoder", "voice.npy is missing", "wavvae/model_only_last.ckpt"):
        assert part in str(raised.value)


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
            found.append(int(model.network(input_ids=torch.tensor([found])).logits[0, -1].argmax()))
    return [token - FIRST for token in found[given - 1 :]]


def test_phones_are_those_of_the_likeliest_tokens(model: GraphemeModel, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = end_soon(model, monkeypatch, 12)
    read = model(SPOKEN_TEXT)
    assert not read.finished
    assert list(zip(read.phones, read.tones, strict=True)) == [separated(token) for token in expected]
    assert read.phones[0] == 145
    assert len(read.phones) == 13


def test_the_end_token_ends_and_is_no_phone(model: GraphemeModel, monkeypatch: pytest.MonkeyPatch) -> None:
    written = end_soon(model, monkeypatch, 6)
    head = model.network.lm_head.weight
    with torch.no_grad():  # What was the fourth token is now less likely than the end.
        head[FIRST + END] = 2 * head[FIRST + written[4]]
    expected = end_soon(model, monkeypatch, 12)
    read = model(SPOKEN_TEXT)
    assert expected[-1] == END
    assert read.finished
    assert list(read.phones) == [separated(token)[0] for token in expected[:-1]]


def test_no_phones_are_the_texts_fault(model: GraphemeModel) -> None:
    with torch.no_grad():
        model.network.lm_head.weight[FIRST:] = 0
        model.network.model.norm.weight.zero_()
        model.network.lm_head.weight[FIRST + END] = 0
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
        ({name: value for name, value in weights.items() if "norm" not in name}, r"missing: .*model\.norm\.weight"),
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


# --- Segments ---------------------------------------------------------------------------------------------------------
RATE = 24000


def test_a_segment_becomes_as_loud_as_the_prompt_by_the_official_meter() -> None:
    import pyloudnorm  # Here, for it brings scipy.

    lufs, samples = -30.0, np.random.default_rng(0).standard_normal(3 * RATE) * 0.05
    # Its level rises and falls about four times a second.
    speech = (samples * (1 + np.sin(np.arange(len(samples)) * 2 * np.pi * 4 / RATE))).astype(np.float32)
    matched = level_matched(speech, lufs, RATE)
    assert matched.dtype == np.float32
    assert integrated_loudness(matched, RATE).lufs == pytest.approx(lufs, abs=1e-3)
    assert pyloudnorm.Meter(RATE).integrated_loudness(matched.astype(float)) == pytest.approx(lufs, abs=0.1)


# --- Texts ------------------------------------------------------------------------------------------------------------
GERMAN = "Der schnelle braune Fuchs springt über den faulen Hund und läuft dann in den Wald."


@pytest.fixture(autouse=True)
def without_official_normaliser(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on machines that lack WeTextProcessing."""
    for name in ("tn", "tn.english", "tn.english.normalizer", "tn.chinese", "tn.chinese.normalizer"):
        monkeypatch.setitem(sys.modules, name, None)


def test_other_languages_are_refused_with_those_that_are_spoken() -> None:
    with pytest.raises(TextError, match="looks like German, but MegaTTS 3 speaks only English and Chinese"):
        read_text(GERMAN)


@pytest.mark.parametrize("nothing", ["  \n", "🙂"])
def test_nothing_to_speak_is_an_error(nothing: str) -> None:
    with pytest.raises(TextError, match=r"no text|can be spoken"):
        read_text(nothing)


def test_english_is_written_out_and_the_user_is_told_by_whose_rules() -> None:
    read = read_text("It costs $5.")
    assert read.segments == ("It costs five dollars.",)
    assert len(read.notes) == 1
    assert "WeTextProcessing" in read.notes[0]
    assert read_text("It costs five dollars.").notes == ()


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


def test_what_the_grapheme_model_could_not_finish_is_cut_again() -> None:
    words = "word " * 200
    segments = read_text(words).segments
    assert all(len(segment) <= 300 for segment in segments)
    assert " ".join(segments).split() == words.split()
    mixed = read_text("好的" + " word" * 200).segments
    assert all(len(segment) <= 300 for segment in mixed)
    assert "".join(mixed).count("word") == 200


def test_marks_become_full_width_but_not_within_numbers() -> None:
    assert split_chinese("你好,一共3.14元!行吗?12:30见.") == ["你好，一共3.14元！行吗？12:30见。"]
