"""SPADE's importance of layers, measured by a study."""

from __future__ import annotations

from pathlib import Path

import pytest

from paretone.paths import resource
from paretone.reading import parsed_toml
from paretone.studies.definition import parse
from paretone.studies.running import FINISHED, LocalExecutor, run
from paretone.studies.store import Store
from paretone.techniques import problem, resolve
from tests.engine import speaking
from tests.engine.small_language import write_model, write_student
from tests.engine.studies.small import Follower

TEXTS = ["Rice is often served.", "The box was thrown beside the truck."]


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
