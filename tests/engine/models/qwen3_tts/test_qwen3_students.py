"""Students of Qwen3-TTS: what they learn from is what the model reads, training, and exports in the official layout."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

import paretone
from paretone import models
from paretone.errors import Cancelled, CheckpointError, ProfileError, SettingError, TrainingError
from paretone.export.language import PROVENANCE, LanguageExport, export_language
from paretone.export.targets import export
from paretone.models.base import Utterance, Voice
from paretone.models.qwen3_tts.adapter import QwenSpeech
from paretone.observer import Observer
from paretone.speaking import scripted, synthesise
from paretone.techniques.spade.measuring import own_speech
from paretone.techniques.spade.training import StudentOptions, StudentRecipe
from paretone.training.forms import training_form
from paretone.training.frame_teacher import FrameTeacher
from paretone.training.manifest import ManifestRow
from paretone.training.requests import Follower
from paretone.training.spoken_tokens import SpokenTokens
from paretone.training.teachers import read_teacher
from paretone.training.token_recipe import TokenData
from tests.engine.command_line import Console, loaded
from tests.engine.models.official import load, setting, used, write_noise
from tests.engine.models.qwen3_tts.test_qwen3_speech import (
    BASE,
    CUSTOM,
    DESIGN,
    RYAN,
    TEXT,
    changed,
    folder_of,
    rewritten,
)
from tests.engine.training.learning import assert_learns
from tests.engine.training.manifests import write_manifest

pytest.importorskip("tokenizers")
ROWS = 8


@pytest.fixture(scope="module")
def releases(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    design = tmp_path_factory.mktemp("design") / "release"
    changed(folder_of("custom_voice"), design, tts_model_type="voice_design")
    return {BASE: folder_of("base"), CUSTOM: folder_of("custom_voice"), DESIGN: design}


def teacher_of(model: str, folder: Path | None = None) -> FrameTeacher:
    found = read_teacher(model, str(folder or folder_of("custom_voice")), Follower())
    assert isinstance(found, FrameTeacher)
    return found


@pytest.fixture(scope="module")
def manifest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Noise, in the voice of a named speaker."""
    folder, rows = tmp_path_factory.mktemp("recorded"), []
    for number in range(ROWS):
        audio = write_noise(folder / f"{number}.wav", 0.6 + 0.1 * number, seed=number)
        rows.append(ManifestRow(0, audio, f"Text {number}.", (), "ryan", number < 4))
    return write_manifest(folder / "manifest.csv", rows)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A release, next to which students may be."""
    return Path(shutil.copytree(folder_of("custom_voice"), tmp_path / "release"))


@pytest.mark.parametrize("model", [BASE, CUSTOM, DESIGN])
def test_sequences_are_what_the_model_reads_when_it_speaks(model: str, voice: Voice, releases: dict) -> None:
    teacher, speech = teacher_of(model, releases[model]), load(model, releases[model])
    who = {BASE: voice, CUSTOM: RYAN, DESIGN: Voice("A calm man.", "", "", "")}[model]
    more = {BASE: {"continue": False}, CUSTOM: {}, DESIGN: {"instruction": who.id}}[model]
    given = setting(model, **{"temperature": 0.0, "inner_temperature": 0.0, **more})
    ((forced,),) = own_speech(speech, [Utterance(TEXT, who)], given, Observer())
    ((_, decoding),) = speech.decodings(scripted(speech, TEXT, who, given))
    codes = np.array([code for cycle in decoding for code in cycle.codes]).reshape(-1, 8)
    spoken = SpokenTokens(who.id, teacher.read(TEXT), codes)
    if model == BASE:
        teacher.meet(voice.id, Path(voice.audio))
    batch = teacher.collate([[spoken], [replace(spoken, codes=codes[:5])]])
    torch.testing.assert_close(batch.ids[0], forced.embedded[0], rtol=1e-4, atol=1e-5)
    assert batch.labels[0, forced.prompt - 1 :].tolist() == [*codes[:, 0], teacher.codes]
    assert batch.heard.sum(1).tolist() == [len(batch.ids[0]), forced.prompt + 5]
    seen = teacher.network(batch)
    states = speech.own.tokens.transformer(forced.embedded, None, forced.positions)[0, forced.prompt - 1 :]
    expected = speech.own.tokens.logits(states)
    torch.testing.assert_close(seen.logits[: len(expected)], expected, rtol=1e-3, atol=1e-3)
    # Where it spoke itself, the likeliest other codes are those that it chose.
    ours = batch.framed < len(codes)
    assert ours.sum() == -(-len(codes) // 8)
    chosen = teacher.completed(batch, seen).argmax(-1).view(-1, 7)[ours]
    assert torch.equal(chosen, batch.frames[ours][:, 1:]) and torch.equal(batch.frames[ours], torch.tensor(codes)[::8])


def test_a_student_learns_both_what_is_said_and_the_states_that_frames_are_completed_from() -> None:
    teacher = teacher_of(CUSTOM)
    draw = np.random.default_rng(0)
    codes = [draw.integers(0, teacher.codes, (12, 8), np.int32) for _ in range(12)]
    said = tuple(SpokenTokens("ryan", teacher.read(f"Text {number}."), one) for number, one in enumerate(codes))
    options = StudentOptions(positions=300, warm_up=1, alpha=0.0, retained=(0, 2), validation_items=4, other_rate=1e-3)
    recipe = StudentRecipe(teacher, TokenData(said[:8], said[8:]), torch.device("cpu"), options)
    predictor = [one.clone() for one in teacher.predictor.parameters()]
    assert_learns(recipe, 25, "divergence", "divergence_of_others")
    assert all(map(torch.equal, teacher.predictor.parameters(), predictor)), "it does not learn"


def test_a_student_is_trained_resumed_heard_and_exported(
    root: Path, manifest: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(models, "load_model", loaded)
    console, place = Console(capsys), ("--model", CUSTOM, "--folder", root)
    given = (*place, "--sentences", 0, "--manifest", manifest, "--layers", "0,2", "--work", tmp_path / "work", "--json")
    assert console.data("train", "spade", *given, "--steps", 2)["retained"] == "0,2"
    again = console.data("train", "spade", *given, "--steps", 4, "--resume")
    assert again["steps"] == 4 and len(load_file(again["checkpoint"])) == 2 + 2 * 11, "layers, norm and head alone"
    speech: QwenSpeech = load(CUSTOM, root)
    assert {one.retained for one in speech.info.students} == {(0, 2)}
    student = used("spade", depth=2)
    said, plain = (synthesise(speech, TEXT, RYAN, setting(CUSTOM, *some)) for some in ([student], []))
    assert said.measurements.ops_ratio < 1 and not np.array_equal(said.samples[:1920], plain.samples[:1920])
    drafted = synthesise(speech, TEXT, RYAN, setting(CUSTOM, student, used("inner_drafts", layers=1)))
    assert drafted.trace.decoding.tokens == said.trace.decoding.tokens
    files = console.data("export-model", "student", *place, "--out", tmp_path / "out", "--json")["files"]
    assert set(files) == {"model.safetensors", "config.json", PROVENANCE}
    told = json.loads((tmp_path / "out" / "config.json").read_text(encoding="utf-8"))["talker_config"]
    assert (told["num_hidden_layers"], told["retained_layers"]) == (2, [0, 2])
    # In their places, they are a release that says the same.
    whole = Path(shutil.copytree(folder_of("custom_voice"), tmp_path / "whole"))
    for name in ("model.safetensors", "config.json"):
        (whole / name).write_bytes((tmp_path / "out" / name).read_bytes())
    smaller = load(CUSTOM, whole)
    assert smaller.info.layers == 2
    assert np.array_equal(synthesise(smaller, TEXT, RYAN, setting(CUSTOM)).samples, said.samples)
    with pytest.raises(Cancelled):
        export_language(LanguageExport(CUSTOM, "student", tmp_path / "no", model_folder=str(root)), Cancelling())
    assert not (tmp_path / "no").exists()


class Cancelling(Observer):
    def check(self) -> None:
        raise Cancelled


def test_it_is_trained_from_python_on_its_own_voice_or_a_recordings(manifest: Path, tmp_path: Path) -> None:
    root = Path(shutil.copytree(folder_of("base"), tmp_path / "release"))
    model = paretone.load(BASE, folder=root, device="cpu")
    about = {"model": BASE, "folder": str(root), "sentences": 0, "manifest": str(manifest), "retained": (1,)}
    made = model.prepare("spade", "train", **about, work=str(tmp_path / "work"), steps=1, export=str(root))
    assert made.figures["retained"] == "1" and Path(made.checkpoint).parent == root / "students"


@pytest.mark.parametrize("model", [CUSTOM, DESIGN])
def test_own_speech_is_kept_frame_by_frame(model: str, releases: dict, tmp_path: Path) -> None:
    root = Path(shutil.copytree(releases[model], tmp_path / "release"))

    def end(weights: dict[str, torch.Tensor]) -> None:
        head = weights["talker.codec_head.weight"]
        head[166] = 2 * head[5]

    rewritten(root / "model.safetensors", end)
    teacher = teacher_of(model, root)
    spoken = teacher.speak([TEXT] * 6, [RYAN], 0, "cpu", Follower())
    assert spoken and all(one.codes.shape[1:] == (8,) and len(one.codes) >= 2 for one in spoken)
    assert all(one.phones.tolist() == teacher.read(TEXT).tolist() for one in spoken)
    assert {one.voice for one in spoken} <= {"ryan"} if model == CUSTOM else len({one.voice for one in spoken}) > 1


def test_a_voice_that_it_lacks_is_named_before_any_work(manifest: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken.csv"
    text = manifest.read_text(encoding="utf-8").replace(",ryan,", ",nobody,", 1)
    broken.write_text(text.replace("\n", f"\n{manifest.parent}/").removesuffix(f"{manifest.parent}/"), encoding="utf-8")
    with pytest.raises(TrainingError, match="line 2: This release has no speaker 'nobody'; it has"):
        teacher_of(CUSTOM).record(broken, tmp_path / "work", Follower())


def test_a_damaged_student_is_refused(root: Path, tmp_path: Path) -> None:
    speech = load(CUSTOM, root)
    about = {"kind": "student", "base": speech.info.fingerprint, "retained": "[0]", "stage": "recovered"}
    (root / "students").mkdir()
    save_file({"talker.model.norm.weight": torch.ones(48)}, root / "students" / "one.safetensors", about)
    with pytest.raises(CheckpointError, match=r"one\.safetensors does not fit this architecture: 12 weights missing"):
        synthesise(load(CUSTOM, root), TEXT, RYAN, setting(CUSTOM, used("spade", depth=1)))


def test_what_cannot_be_done_is_said(root: Path, tmp_path: Path) -> None:
    info = load(CUSTOM, root).info
    spade, draft = (training_form(name) for name in ("spade", "speculative"))
    assert spade.why_not(info) == "" and "to a frame of 8 codes" in draft.why_not(info)
    with pytest.raises(SettingError, match=r"A draft cannot be exported: .* frame of 16 codes"):
        export_language(LanguageExport(CUSTOM, "draft", tmp_path / "out", model_folder=str(root)), Observer())
    profile = paretone.load(CUSTOM, folder=root, device="cpu").speak(TEXT, voice="ryan").profile()
    for target in ("transformers", "vllm", "gguf"):
        with pytest.raises(ProfileError, match=r"frame of 16 codes, which .* does not know\. The profile runs"):
            export(profile, target, tmp_path / "out", Observer(), str(root))
    assert not (tmp_path / "out").exists()
