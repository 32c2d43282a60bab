"""Drafts and students of CosyVoice 2 and LLaSA, on small releases in the official layouts: by the code that trains the
bundled model's, from the release's folder to a file that the release is decoded with."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn import functional

from paretone.errors import TrainingError
from paretone.files import wav
from paretone.models import catalogue, load_model
from paretone.models.base import Voice
from paretone.models.families.language_network import IGNORED
from paretone.models.llasa import adapter
from paretone.setting.knobs import Values
from paretone.setting.setting import Setting, UsedTechnique
from paretone.speaking import synthesise
from paretone.techniques.spade.training import Student, StudentOptions
from paretone.techniques.speculative.feature_training import DraftOnFeatures, FeatureDraftOptions
from paretone.techniques.speculative.training import Draft, DraftOptions
from paretone.training import teachers
from paretone.training.companions import train_companion
from paretone.training.manifest import ManifestRow
from paretone.training.requests import CompanionRequest, Follower
from paretone.training.session import Intervals
from paretone.training.spoken_tokens import SpokenTokens
from paretone.training.teachers import LlasaTeacher, OfficialTeacher
from tests.engine.models.cosyvoice2 import small_release as cosy_release
from tests.engine.models.llasa import small_release as llasa_release
from tests.engine.training.learning import Recorder
from tests.engine.training.manifests import write_manifest
from tests.packages import needs

pytestmark = needs("onnx", "onnxruntime", "tokenizers", "transformers")
COSY, LLASA = "CosyVoice2-0.5B", "Llasa-1B"
TEXTS = ("It says this.", "Rain comes tomorrow.", "Go on.", "Two of 3 are gone.", "Nobody came.", "The end is near.")
RECORDINGS = 8
QUICK = Intervals(validation_steps=2, validates_first=True)
both = pytest.mark.parametrize("model", [COSY, LLASA])
DRAFT = Draft(DraftOptions(positions=300, warm_up=1, lower=1, upper=1))
ON_FEATURES = DraftOnFeatures(FeatureDraftOptions(positions=300, warm_up=1))
# What was recorded has nothing to do with a teacher that is noise: learn from the teacher alone.
STUDENT = Student(StudentOptions(retained=(0, 2), alpha=0.0, attention_interval=2, matrix_rate=1e-3, other_rate=1e-4))


@dataclass(frozen=True)
class Release:
    """A small release, and recordings to learn from."""

    model: str
    root: Path
    manifest: Path

    def load(self):
        return load_model(self.model, folder=str(self.root), device="cpu")

    @property
    def voice(self) -> Voice:
        return Voice("own", "Own", str(self.manifest.parent / "0.wav"), TEXTS[0])


def recorded(folder: Path) -> Path:
    rows = []
    for number in range(RECORDINGS):
        noise = np.random.default_rng(number).standard_normal(9600 + 400 * number) * 0.1
        (folder / f"{number}.wav").write_bytes(wav(noise.astype(np.float32), 16000))
        rows.append(ManifestRow(0, folder / f"{number}.wav", TEXTS[number % len(TEXTS)], (), "one", number < 4))
    return write_manifest(folder / "manifest.csv", rows)


@pytest.fixture(scope="module")
def releases(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Release]:
    folder = tmp_path_factory.mktemp("releases")
    manifest = recorded(folder)
    cosy_release.write_release(folder / COSY)
    # One that has other things to say than the end.
    torch.save(cosy_release.language_weights(end=0.0), folder / COSY / "llm.pt")
    llasa_release.write_language_model(folder / LLASA)
    llasa_release.write_converted_codec(folder / "xcodec2")
    return lambda model: Release(model, folder / model, manifest)


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch, one_thread: None) -> None:
    monkeypatch.setattr(adapter, "CONTEXT", 300)
    # The small codec has more codes than the small language model.
    hear = LlasaTeacher.hear
    monkeypatch.setattr(LlasaTeacher, "hear", lambda *given: [code % llasa_release.CODES for code in hear(*given)])


def teacher_of(release: Release) -> OfficialTeacher:
    found = teachers.read_teacher(release.model, str(release.root), Follower())
    assert isinstance(found, OfficialTeacher)
    return found


@both
def test_sequences_are_what_the_model_reads_when_it_speaks(releases: Callable[[str], Release], model: str) -> None:
    release = releases(model)
    teacher, codes = teacher_of(release), [5, 3, 8]
    text = teacher.read("Go on.")
    batch = teacher.collate([[SpokenTokens("one", text, np.array(codes))], [SpokenTokens("one", text, np.array([1]))]])
    speech = release.load()
    options = catalogue.entry(model).options_with(**({"mode": "cross_lingual"} if model == COSY else {"clone": False}))
    prompt, passages = speech.prepare("Go on.", release.voice, options, lambda: None)
    request = speech.request(speech.own, passages.passages[0], prompt, options)
    length = request.embedded.shape[1]
    found = functional.embedding(batch.ids[0], teacher.network.embedding.weight)
    assert torch.equal(found[:length], request.embedded[0])
    assert torch.equal(found[length:], speech.own.tokens.embed(codes))
    # The code after each place, then the end; the shorter sequence is filled up where nothing looks.
    assert batch.labels[0].tolist() == [IGNORED] * (length - 1) + [*codes, teacher.codes]
    assert batch.labels[1, length - 1 :].tolist() == [1, teacher.codes, IGNORED, IGNORED]
    assert batch.heard.sum(1).tolist() == [length + 3, length + 1]
    scores = teacher.network(batch).logits[:4]
    states = speech.own.tokens.transformer(found[None], None, batch.positions)[0, length - 1 :]
    torch.testing.assert_close(scores, speech.own.tokens.logits(states), rtol=1e-4, atol=1e-4)


@both
def test_joined_utterances_are_a_text_and_its_continuation(releases: Callable[[str], Release], model: str) -> None:
    teacher = teacher_of(releases(model))
    first, second = (SpokenTokens("one", teacher.read(text), np.array([2, 4])) for text in ("Go on.", "It says this."))
    batch = teacher.collate([[first, second]])
    whole = {COSY: "Go on.It says this.", LLASA: "Go on. It says this."}[model]
    alone = teacher.collate([[SpokenTokens("one", teacher.read(whole), np.array([2, 4, 2, 4]))]])
    assert torch.equal(batch.ids, alone.ids) and torch.equal(batch.labels, alone.labels)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "companion", "technique", "kind"),
    [
        (COSY, DRAFT, UsedTechnique("speculative", Values(tolerance=0.0)), "drafts"),
        (LLASA, ON_FEATURES, UsedTechnique("speculative", Values(tolerance=0.0, draft="features")), "feature_drafts"),
        (COSY, STUDENT, UsedTechnique("spade", Values(depth=2)), "students"),
    ],
    ids=["draft", "draft on features", "student"],
)
def test_companions_trained_from_recordings_speak(
    releases: Callable, model: str, companion: Draft | Student, technique: UsedTechnique, kind: str, tmp_path: Path
) -> None:
    release, follower = releases(model), Recorder()
    places = {"folder": release.root, "manifest": release.manifest, "export": tmp_path / "made"}
    given = {name: str(path) for name, path in places.items()}
    request = CompanionRequest(model=model, work=str(tmp_path / "work"), sentences=0, steps=6, device="cpu", **given)
    made = Path(train_companion(request, companion, follower, QUICK).checkpoint)
    name = "divergence" if kind == "students" else "acceptance"
    validated = [one.validation[name] for one in follower.seen if one.validation]
    assert len(set(validated)) > 1 and (name == "acceptance" or validated[-1] < validated[0])
    assert sorted(follower.told)[-1][1] == RECORDINGS
    place = release.root / made.parent.name
    place.mkdir(exist_ok=True)
    (place / made.name).write_bytes(made.read_bytes())
    speech = release.load()
    (found,) = getattr(speech.info, kind)
    assert kind == "feature_drafts" or found.retained == (0, 2)
    more = {"mode": "cross_lingual"} if model == COSY else {"clone": False}
    setting = Setting(model, catalogue.entry(model).options_with(**more), seed=2).with_technique(technique)
    said = synthesise(speech, "Go on.", release.voice, setting)
    assert said.measurements.tokens > 0
    assert any(cycle.drafted for cycle in said.trace.decoding.cycles) or said.measurements.ops_ratio < 1


@pytest.mark.slow
def test_what_the_model_speaks_itself_is_learnt_from(releases: Callable[[str], Release], tmp_path: Path) -> None:
    cosy_release.write_release(tmp_path / COSY)
    release = Release(COSY, tmp_path / COSY, releases(COSY).manifest)
    teacher, follower = teacher_of(release), Recorder()
    texts = ["Go on.", "It says this."]
    spoken = teacher.speak(texts, [release.voice], 0, "cpu", follower)
    assert [one.phones.tolist() for one in spoken] == [teacher.read(text).tolist() for text in texts]
    assert all(len(one.codes) >= 2 * len(one.phones) for one in spoken)  # CosyVoice's least length.
    assert follower.told == [(0, 2), (1, 2), (2, 2)]


def test_texts_without_a_word_are_named_before_any_work(releases: Callable[[str], Release], tmp_path: Path) -> None:
    release = releases(COSY)
    broken = tmp_path / "broken.csv"
    text = release.manifest.read_text().replace("Go on.", "…")
    broken.write_text(re.sub(r"(?m)^(?=.*\.wav)", f"{release.manifest.parent}/", text))
    with pytest.raises(TrainingError, match="line 4: "):
        teacher_of(release).record(broken, tmp_path / "work", Follower())


def test_models_without_tokens_are_refused() -> None:
    with pytest.raises(TrainingError, match=r"of F5 mini can be trained: it decodes no tokens"):
        teachers.read_teacher("f5-mini", "", Follower())
