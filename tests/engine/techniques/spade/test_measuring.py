"""Layers' importance: measured, recorded, and which layers it keeps."""

import json
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from paretone import cli
from paretone.errors import Cancelled, SettingError, StudyError
from paretone.measure.evaluation import judges
from paretone.models.base import Utterance
from paretone.models.catalogue import voices
from paretone.models.files import layer_importance
from paretone.models.files.checkpoints import fingerprint
from paretone.models.files.layer_importance import COSINE, DIVERGENCE, FILE, WORD_ERROR, ImportanceRecord, read_record
from paretone.models.minis.lm_mini import LmMiniSpeech
from paretone.observer import Observer
from paretone.paths import own_place
from paretone.session.commands import LoadModel, RunStudy, ShutDown
from paretone.session.engine_thread import EngineThread
from paretone.session.events import JobFinished, Prepared, StudyEnded
from paretone.studies.definition import parse, read, to_toml
from paretone.studies.running import FINISHED, PAUSED, LocalExecutor, run
from paretone.studies.store import Store
from paretone.studies.study import Study
from paretone.techniques.spade.importance import bootstrapped, importance
from paretone.techniques.spade.importance import finished as adopted_by
from paretone.techniques.spade.measuring import measure_layers, own_speech, without
from paretone.training.token_recipe import divergence
from tests.engine import speaking
from tests.engine.recorder import PATIENCE_SECONDS, Recorder
from tests.engine.small_language import LAYERS, write_model
from tests.engine.speaking import load, setting
from tests.engine.studies.ear import EAR, Ear, silence
from tests.engine.studies.small import Follower, finished, study
from tests.workload import only_in_full

pytestmark = [pytest.mark.usefixtures("short_prompts"), pytest.mark.slow]

UTTERANCES = tuple(map(Utterance, ("Rice is good.", "The box was thrown."), voices("lm-mini")))
TEXTS = ["Rice.", "The box was thrown."]
VALUES = (7.0, 8.0, 9.0), (3.0, 1.0, 2.0), (0.3, 0.1, 0.2)
EARLIER = tuple(map(layer_importance.LayerImportance, (WORD_ERROR, DIVERGENCE, COSINE), VALUES))


@pytest.fixture
def model(tmp_path: Path) -> LmMiniSpeech:
    return load(write_model(tmp_path / "model"))


def test_divergence_is_that_of_the_model_without_the_layer(model: LmMiniSpeech) -> None:
    with pytest.raises(SettingError, match="word_error"):
        measure_layers(model, UTTERANCES, setting(), ("loudness",), Observer())
    earlier = measure_layers(model, UTTERANCES, setting(), (COSINE,), Observer())
    assert all(0 < value < 2 for value in earlier.deciding.values), "between no turn and all the way round"
    record = measure_layers(model, UTTERANCES, setting(), (DIVERGENCE,), Observer(), earlier)
    assert record.measure(COSINE) == earlier.measure(COSINE)
    measure = record.measure(DIVERGENCE)
    (used,) = without(setting(), 1, LAYERS).techniques
    assert used.knobs["layers"] == "0,2"
    assert record.checkpoint == model.info.fingerprint and measure.utterances == 2
    spoken = own_speech(model, UTTERANCES, setting(), Observer())
    tokens, found = model.own.tokens, []
    with torch.inference_mode():
        for (one,) in spoken:
            whole = tokens.logits(tokens.transformer(one.embedded, None, one.positions)[0, one.prompt - 1 :])
            shallow = tokens.kept([layer for layer in range(LAYERS) if layer != 1])
            hidden = shallow.transformer(one.embedded, None, one.positions)
            found.append(float(divergence(shallow.logits(hidden[0, one.prompt - 1 :]), whole)))
    assert measure.values[1] == pytest.approx(np.mean(found), rel=1e-3)
    assert all(low <= value <= high for low, value, high in zip(measure.low, measure.values, measure.high, strict=True))


@only_in_full("speech")
def test_word_errors_without_each_layer_come_with_their_run_aways(model: LmMiniSpeech, monkeypatch: pytest.MonkeyPatch):
    pytest.importorskip("pocketsphinx")
    # As of a model whose speech has no known length.
    ask = LmMiniSpeech.request
    monkeypatch.setattr(LmMiniSpeech, "request", lambda *given: replace(ask(*given), length=None))
    measure = measure_layers(model, UTTERANCES, setting(), (WORD_ERROR,), Observer()).deciding
    # It says noise, and never ends by itself: with a layer less as well.
    assert measure.run_away == (len(UTTERANCES),) * LAYERS and measure.baseline > 0.3 and min(measure.values) > 0.3


def test_it_can_be_cancelled(model: LmMiniSpeech) -> None:
    class Stopping(Observer):
        def progress(self, done: int, total: int) -> None:
            if done == 2:
                raise Cancelled

    with pytest.raises(Cancelled):
        measure_layers(model, UTTERANCES, setting(), (DIVERGENCE,), Stopping())


def test_the_command_keeps_the_record_where_the_engine_looks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PARETONE_DATA", str(tmp_path / "own"))
    root = write_model(tmp_path / "model")
    assert cli.main(["measure-layers", "--folder", str(root), "--sentences", "1", "--depth", "2", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    model = load(root)
    record = read_record([Path(data["path"]).parent], model.info.fingerprint)
    assert Path(data["path"]).name == FILE and record is not None and list(record.retained(2)) == data["retained"]
    assert model.info.layer_order == record.order


def test_the_figures_are_means_over_utterances() -> None:
    found = bootstrapped(DIVERGENCE, np.array([[1.0, 0.0], [3.0, 0.5]]))
    assert found.values == (2.0, 0.25) and found.utterances == 2
    assert found.low == (1.0, 0.0) and found.high == (3.0, 0.5)
    found = bootstrapped(WORD_ERROR, np.array([[1.0], [0.0]]), np.array([3, 9]), baseline=0.1)
    assert found.values == pytest.approx((0.25,)) and found.baseline == 0.1, "weighted by words"
    found = bootstrapped(DIVERGENCE, np.random.default_rng(1).normal(0, 1, (12, 3)) * [0.01, 1, 1] + [10, 0, 0])
    assert found.ranks == ((0, 0), (1, 2), (1, 2)), "a clear ranking is certain, and a tie is not"
    found = bootstrapped(WORD_ERROR, np.tile([0.8, 0.0, 0.0, 0.0], (5, 1)), np.full(5, 9))
    assert found.ranks == ((0, 0), (1, 3), (1, 3), (1, 3))


@pytest.fixture(autouse=True, scope="module")
def _ear() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(judges, "JUDGES", (*judges.JUDGES, EAR))
        patch.setitem(sys.modules, "ear", SimpleNamespace(load=lambda texts, folder, device: Ear()))
        patch.setattr("paretone.studies.execution.reference_speech", silence)
        yield


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model with a measurement of its layers, which stays as it is."""
    root = write_model(tmp_path_factory.mktemp("root") / "model")
    record(fingerprint(root / "model.safetensors")).write(root / FILE)
    return root


@pytest.fixture(scope="module")
def whole(_ear: None, short_prompts: None, root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The results of the study of :func:`definition`, all takes of which are made."""
    folder = tmp_path_factory.mktemp("whole") / "s"
    with Store(folder) as store:
        store.begin(parse(definition(root)))
        assert ran(parse(definition(root)), store) == FINISHED
    return folder


@pytest.fixture
def results(whole: Path, tmp_path: Path) -> Path:
    """A copy of the same, for a test to adopt from."""
    return shutil.copytree(whole, tmp_path / "s")


def record(checkpoint: str, *measures: layer_importance.LayerImportance) -> ImportanceRecord:
    return ImportanceRecord("lm-mini", checkpoint, LAYERS, measures or EARLIER, seed=5, notes=("Earlier.",))


def definition(root: Path, **changes: object) -> dict[str, object]:
    of = {"title": "Layers", "model": "lm-mini", "folder": str(root), "device": "cpu", "options": {"speed": 2.0}}
    return of | {"sentences": TEXTS, "judges": ["ear"], "leave_one_layer_out": True, "layers": LAYERS} | changes


def ran(chosen: Study, store: Store, follower: Follower | None = None) -> str:
    executor = LocalExecutor(speaking.load, speaking.load(Path(chosen.folder)))
    return run(chosen, store, executor, follower or Follower())


def performed(
    folder: Path, chosen: Study, follower: Follower | None = None, between: Callable[[Store], None] = lambda store: None
) -> tuple[str, object, ImportanceRecord | None]:
    """End of a study, outcome of its word error rates, and its record of importance."""
    with Store(folder) as store:
        store.begin(chosen)
        state = ran(chosen, store, follower)
        between(store)
        adopted = adopted_by(chosen, store)
        return state, adopted, importance(store, chosen) if adopted is not None and adopted.result else None


def test_its_word_errors_join_the_other_measures_in_the_own_place(root: Path, results: Path) -> None:
    before = (root / FILE).read_bytes()
    chosen = parse(definition(root))
    with Store(results) as store:
        takes = {(one.cell.setting, one.text): one.verdicts[0].figures for one in store.takes()}
    totals = [sum(takes[one.key, text]["edits"] for text in TEXTS) / 5 for one in chosen.candidates]
    state, adopted, found = performed(results, chosen)
    measured = found.measure(WORD_ERROR)
    assert (measured.baseline, *measured.values) == pytest.approx(totals, abs=1e-5) and len(set(totals)) > 1
    path = own_place("lm-mini") / FILE
    assert (state, adopted.result.path) == (FINISHED, str(path))
    assert str(path) in adopted.sentence and "Merged the word error rates" in adopted.sentence
    kept = read_record([path.parent], found.checkpoint)
    assert kept == adopted.result.record and kept.measure(WORD_ERROR) == found.measure(WORD_ERROR) != EARLIER[0]
    assert (kept.measure(DIVERGENCE), kept.measure(COSINE)) == EARLIER[1:]
    assert kept.notes == ("Earlier.", "Word errors measured by the study “Layers”.")
    assert (root / FILE).read_bytes() == before, "what came with the model stays as it is"


def test_an_unfinished_study_leaves_nothing(root: Path, tmp_path: Path) -> None:
    chosen = parse(definition(root))
    with Store(tmp_path / "s") as store:
        store.begin(chosen)
        with pytest.raises(StudyError, match=f"without each of the {LAYERS} layers"):
            importance(store)
    state, adopted, _ = performed(tmp_path / "s", chosen, Follower(pause_after=2))
    assert state == PAUSED
    assert adopted.result is None
    assert "were not merged" in adopted.sentence and "let it run to its end" in adopted.sentence
    assert not (own_place("lm-mini") / FILE).exists()
    finished(tmp_path / "other", study())
    with Store(tmp_path / "other") as store:
        assert importance(store) is None and adopted_by(study(), store) is None, "other studies adopt nothing"


@only_in_full("repetitions")
def test_takes_of_other_files_or_models_do_not_count(root: Path, results: Path, tmp_path: Path) -> None:
    performed(tmp_path / "other", parse(definition(root, options={"speed": 1.8}, sentences=TEXTS[:1])))
    _, _, changed = performed(tmp_path / "other", parse(definition(root)))
    _, _, alone = performed(results, parse(definition(root)))
    assert changed.measures == alone.measures
    _, _, with_tensors = performed(tmp_path / "other", parse(definition(root, grid={"speed": [1.6, 2.0]})))
    _, _, alone = performed(results, parse(definition(root)))
    assert with_tensors.measures == alone.measures


def test_a_damaged_or_another_models_record_is_named(root: Path, results: Path) -> None:
    path = own_place("lm-mini") / FILE

    def damage(store: Store) -> None:
        path.parent.mkdir(parents=True)
        path.write_text("{", encoding="utf-8")

    state, adopted, _ = performed(results, parse(definition(root)), between=damage)
    assert state == FINISHED
    assert adopted.result is None and f"{path} is not a measurement of layers" in adopted.sentence
    record("another").write(path)
    before = path.read_bytes()
    _, adopted, _ = performed(results, parse(definition(root)))
    assert adopted.result is None and f"{path} is of another checkpoint" in adopted.sentence
    assert path.read_bytes() == before


def test_the_loaded_model_knows_the_new_order(root: Path, tmp_path: Path) -> None:
    file = tmp_path / "layers.toml"
    file.write_text(to_toml(definition(root, sentences=TEXTS[:1])), encoding="utf-8")
    recorder = Recorder()
    engine = EngineThread(recorder.post)
    engine.start()
    try:
        engine.submit(LoadModel(1, "lm-mini", str(root), device="cpu"))
        assert isinstance(recorder.end_of(1), JobFinished)
        engine.submit(RunStudy(2, str(file), ""))
        assert isinstance(recorder.end_of(2), JobFinished)
    finally:
        engine.submit(ShutDown(3))
        assert engine.join(PATIENCE_SECONDS)
    (measured,) = recorder.of(2, Prepared)
    assert measured.result.path == str(own_place("lm-mini") / FILE)
    assert {one.measure for one in measured.result.record.measures} == {WORD_ERROR, DIVERGENCE, COSINE}
    assert measured.info.layer_order == measured.result.record.order
    (ended,) = recorder.of(2, StudyEnded)
    assert measured.result.path in ended.found[-1]


def test_the_command_line_says_so_and_where(root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, path = tmp_path / "layers.toml", own_place("lm-mini") / FILE
    file.write_text(to_toml(definition(root, sentences=TEXTS[:1])), encoding="utf-8")
    assert cli.main(["study", "run", str(file)]) == 0
    assert f"Merged the word error rates without each layer into {path}" in capsys.readouterr().out
    assert cli.main(["study", "run", str(file), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["layers"] == str(path)
    with Store(tmp_path / "layers.study", read_only=True) as store:
        wanted = importance(store, read(file)).measure(WORD_ERROR)
    assert ImportanceRecord.from_json(path.read_text(encoding="utf-8"), "it").measure(WORD_ERROR) == wanted
