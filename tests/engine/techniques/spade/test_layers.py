"""SPADE's importance of layers, measured by a study."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from paretone.errors import StudyError
from paretone.measure.evaluation import judges
from paretone.models.files.layer_importance import FILE, WORD_ERROR, ImportanceRecord
from paretone.paths import resource
from paretone.reading import parsed_toml
from paretone.studies.definition import parse
from paretone.studies.report import write_report
from paretone.studies.results import read
from paretone.studies.running import FINISHED, LocalExecutor, run
from paretone.studies.store import Store
from paretone.techniques import problem, resolve
from paretone.techniques.spade.importance import importance
from tests.engine import speaking
from tests.engine.small_language import write_model, write_student
from tests.engine.studies.ear import EAR, Ear, silence
from tests.engine.studies.small import Follower, finished, study

TEXTS = ["Rice is often served.", "The box was thrown beside the truck."]


@pytest.mark.slow
def test_importance_is_what_the_takes_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_model(tmp_path / "model")
    model = speaking.load(tmp_path / "model")
    layers = model.info.layers
    monkeypatch.setattr(judges, "JUDGES", (*judges.JUDGES, EAR))
    monkeypatch.setitem(sys.modules, "ear", SimpleNamespace(load=lambda texts, folder, device: Ear()))
    monkeypatch.setattr("paretone.studies.execution.reference_speech", silence)
    chosen = parse(
        {
            "model": "lm-mini",
            "sentences": TEXTS,
            "options": {"speed": 2.0},
            "judges": ["ear"],
            "leave_one_layer_out": True,
            "layers": layers,
            "title": "Layers",
        }
    )
    with Store(tmp_path / "s") as store:
        store.begin(chosen)
        with pytest.raises(StudyError, match=f"without each of the {layers} layers"):
            importance(store)
        assert run(chosen, store, LocalExecutor(speaking.load, model), Follower()) == FINISHED
        record = importance(store)
        takes = {(one.cell.setting, one.text): one.verdicts[0].figures for one in store.takes()}
    keys = [one.key for one in chosen.candidates]
    totals = [sum(takes[key, text]["edits"] for text in TEXTS) / 11 for key in keys]
    measured = record.measure(WORD_ERROR)
    assert measured.baseline == pytest.approx(totals[0])
    assert measured.values == pytest.approx(totals[1:], abs=1e-5)
    assert len(set(totals)) > 1
    assert measured.utterances == 2
    assert (record.checkpoint, record.layers) == (model.info.fingerprint, layers)
    written = write_report(read(tmp_path / "s"), tmp_path)
    assert written[-1].name == FILE
    assert ImportanceRecord.from_json(written[-1].read_text(encoding="utf-8"), "it").measures == record.measures


def test_other_studies_have_none(tmp_path: Path) -> None:
    finished(tmp_path, study())
    with Store(tmp_path) as store:
        assert importance(store) is None


@pytest.mark.slow
def test_the_ablation_is_a_study_of_the_students_that_were_trained(tmp_path: Path) -> None:
    root = write_model(tmp_path / "model")
    write_student(root, (0, 1)).rename(root / "students" / "student-2-cosine.safetensors")
    write_student(root, (0, 2), targets="original")
    text = resource("studies", "lm-mini-ablation.toml").read_text(encoding="utf-8")
    for ours, theirs in (("0,1,8,9,10,11", "0,2"), ("0,1,2,9,10,11", "0,1")):
        assert f'layers = "{ours}"' in text
        text = text.replace(ours, theirs)
    given = parsed_toml(text) | {"sentences": TEXTS[:1], "voices": 1, "judges": [], "options": {"speed": 2.0}}
    chosen = parse({name: value for name, value in given.items() if name != "count"})
    model = speaking.load(root)
    settings = {one.name: one.setting for one in chosen.candidates}
    assert problem(model.info, settings["SPADE"]) is not None, "not trained yet"
    write_student(root, (0, 2))
    info = model.look_for_weights(lambda: None)
    ran = {name: resolve(info, one).weights for name, one in settings.items() if "SPADE" in name}
    assert {name: (one.retained, one.targets) for name, one in ran.items()} == {
        "SPADE": ((0, 2), "following"),
        "SPADE, layers by cosine": ((0, 1), "following"),
        "SPADE, original layers": ((0, 2), "original"),
    }
    with Store(tmp_path / "s") as store:
        store.begin(chosen)
        assert run(chosen, store, LocalExecutor(speaking.load, model), Follower()) == FINISHED
        assert len(store.takes()) == len(chosen.candidates) == 6
