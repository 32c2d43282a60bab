"""Drafts and students of a language model of natural speech: its own sentences and tokens, recordings, its layers."""

import json
from pathlib import Path

import numpy as np
import pytest
import soundfile

from paretone.export.language import LanguageExport, export_language
from paretone.front_end.phones import PHONES
from paretone.models import load_model
from paretone.models.base import Voice
from paretone.models.catalogue import entry
from paretone.models.minis.lm_mini import TOKENIZER, LmMiniFolder
from paretone.observer import Observer
from paretone.setting.knobs import Values
from paretone.setting.setting import Setting, UsedTechnique
from paretone.speaking import scripted
from paretone.techniques import spade, speculative
from paretone.techniques.spade.training import Student, StudentOptions
from paretone.techniques.speculative.training import Draft, DraftOptions
from paretone.training.companions import train_companion
from paretone.training.manifest import ManifestRow
from paretone.training.natural_corpus import CorpusOptions, make_corpus, open_corpus
from paretone.training.requests import CompanionRequest, Follower
from paretone.training.sentences import corpus_sentences
from paretone.training.session import LOG, Intervals
from paretone.training.spoken_tokens import at_frames, said_tokens
from paretone.training.teachers import LmMiniTeacher, read_teacher
from tests.engine.small_natural import CODES, CPU, write_lm, write_named, write_vocoder
from tests.engine.training.manifests import write_manifest
from tests.engine.training.toy_natural import Hummer

pytestmark = pytest.mark.usefixtures("one_thread")
QUICK = Intervals(validation_steps=2, validates_first=True)
TEXT = "Is it late?"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_lm(tmp_path_factory.mktemp("natural"))


@pytest.fixture(scope="module")
def teacher(root: Path) -> LmMiniTeacher:
    found = read_teacher("lm-mini", str(root), Observer())
    assert isinstance(found, LmMiniTeacher)
    return found


@pytest.fixture(scope="module")
def anna(tmp_path_factory: pytest.TempPathFactory) -> Voice:
    return write_named(tmp_path_factory.mktemp("voices"))


def test_it_speaks_what_people_write_and_phones_are_found_at_latent_frames(teacher: LmMiniTeacher) -> None:
    assert teacher.sentences(30) == corpus_sentences(30, excluded=teacher.unseen)
    found = at_frames(np.arange(94), 81)
    assert found[0] == 0 and found[40] == 47 and found[-1] == 93
    assert len(found) == 81 and np.all(np.diff(found[:-1]) >= 1)


def manifest_of(folder: Path, rows: int = 10) -> Path:
    """Noise that is called speech; the phones of all recordings but one are given."""
    folder.mkdir()
    draw = np.random.default_rng(1)
    listed = []
    for number in range(rows):
        audio = folder / f"{number}.wav"
        soundfile.write(audio, draw.normal(0, 0.1, 24_000 + 300 * number).astype(np.float32), 24_000)
        phones = (("^", 0.0, 0.1), ("n", 0.1, 0.5), ("ˈO", 0.5, 0.8), (",", 0.8, 0.95))
        listed.append(ManifestRow(0, audio, "Oh no.", phones if number else (), "ab"[number % 2], number < 2))
    return write_manifest(folder / "manifest.csv", listed)


def test_recordings_become_tokens_of_what_is_said(teacher: LmMiniTeacher, tmp_path: Path) -> None:
    training, held_out = teacher.record(manifest_of(tmp_path / "speech"), tmp_path / "prepared", Observer())
    assert (len(training), len(held_out)) == (8, 2)
    for one in (*training, *held_out):
        assert 38 <= len(one.phones) == len(one.codes) <= 46
        assert one.codes.min() >= 0 and one.codes.max() < CODES
    # A phone sounds at the time of its tokens, of which there are 40 a second.
    names = [PHONES[phone] for phone in training[0].phones]
    assert names[:3] == ["^"] * 3 and names[6:19] == ["n"] * 13 and names[22:30] == ["ˈO"] * 8
    assert {PHONES[phone] for phone in held_out[0].phones} >= {"n", "ˈO"}


def asked(root: Path, work: Path, **more: object) -> CompanionRequest:
    """A companion of the small LM mini in ``root``, from recordings or from a corpus."""
    return CompanionRequest(model="lm-mini", work=str(work), folder=str(root), device="cpu", sentences=0, **more)


@pytest.mark.parametrize(
    ("companion", "technique"),
    [
        (Draft(DraftOptions(positions=300, lower=1, upper=1)), speculative.NAME),
        (Student(StudentOptions(positions=300, retained=(0, 2))), spade.NAME),
    ],
    ids=["draft", "student"],
)
def test_a_companion_is_trained_from_recordings_speaks_and_is_exported(
    root: Path, anna: Voice, tmp_path: Path, companion: Draft | Student, technique: str
) -> None:
    request = asked(root, tmp_path / "work", steps=2, manifest=str(manifest_of(tmp_path / "speech")))
    trained = train_companion(request, companion, Follower(), QUICK)
    assert trained.steps == 2 and trained.validation
    model = load_model("lm-mini", folder=str(root), device="cpu")
    assert Path(trained.checkpoint).is_file()
    assert [one.path for one in (*model.info.drafts, *model.info.students)] == [trained.checkpoint]
    chosen = Setting("lm-mini", entry("lm-mini").options_with(speed=2.0)).with_technique(
        UsedTechnique(technique, Values(depth=2) if technique == spade.NAME else Values())
    )
    speech = list(model.decodings(scripted(model, TEXT, anna, chosen)))
    assert sum(len(cycle.tokens) for _, decoding in speech for cycle in decoding) > 5
    out = tmp_path / "out" / "lm-mini"
    export_language(LanguageExport("lm-mini", companion.kind.rstrip("s"), out, model_folder=str(root)), Follower())
    write_vocoder(out.parent / entry("lm-mini").vocoder)
    assert load_model("lm-mini", folder=str(out), device="cpu").info.layers == 2


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpus")
    options = CorpusOptions(voices=2, sentences=5, held_out_voices=1, held_out_sentences=2)
    make_corpus(folder, options, lambda: Hummer(frames=150))
    return folder


def test_companions_learn_from_the_corpus_that_the_model_learnt_from(root: Path, corpus: Path, tmp_path: Path) -> None:
    request = asked(root, tmp_path / "work", steps=1, corpus=str(corpus))
    train_companion(request, Draft(DraftOptions(positions=300, lower=1)), Follower(), QUICK)
    log = json.loads((tmp_path / "work" / LOG).read_text(encoding="utf-8").splitlines()[0])
    assert log["origin"] == f"10 clips of {corpus.name}"
    tokenizer = LmMiniFolder(root).tokenizer(CPU)
    clips, held_out = said_tokens(open_corpus(corpus), tokenizer, root / TOKENIZER, tmp_path / "again")
    assert (len(clips), len(held_out)) == (10, 2)
    assert log["tokens"] == sum(one.frames for one in clips)
