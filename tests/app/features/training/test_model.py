"""Each training asks the engine for what its form says."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.features.training.model import (
    DRAFT,
    GUIDANCE_FREE,
    LANGUAGE_MODEL,
    STUDENT,
    TOKENIZER,
    TRAININGS,
    Place,
    Plan,
    Training,
    training,
)
from engine.models.catalogue import entry
from engine.session.messages import TrainBundledModel, TrainDraft, TrainGuidanceFree, TrainStudent
from engine.setting.knobs import defaults
from engine.techniques import guidance_free
from tests.app.presenters import INFO

PLACE = Place("lm-mini", "models", "small", "cpu")


def plan(one: Training, **knobs: object) -> Plan:
    return Plan(one.name, "speech.csv", "runs", 20.0, True, False, defaults(one.knobs).replace(**knobs))


@pytest.mark.parametrize(("one", "command"), [(GUIDANCE_FREE, TrainGuidanceFree), (DRAFT, TrainDraft)])
def test_what_all_have_in_common_is_passed_on(one: Training, command: type) -> None:
    made = one.command(7, PLACE, plan(one))
    assert type(made) is command
    assert (made.job, made.model, made.folder, made.variant, made.device) == (7, "lm-mini", "models", "small", "cpu")
    assert (made.manifest, made.work, made.minutes, made.half_precision, made.resume) == (
        "speech.csv",
        "runs",
        20.0,
        True,
        False,
    )


def test_guidance_has_the_symbol_of_the_sampler_option() -> None:
    (guidance,) = (knob for knob in entry("f5-mini").options if knob.name == "guidance")
    knobs = defaults(GUIDANCE_FREE.knobs).replace(weight=0.5)
    assert GUIDANCE_FREE.remark(knobs) == f"Stands for guidance {guidance.symbol} = w / (1 − w) = 1.00."
    assert f"guidance {guidance.symbol} = 1.00" in guidance_free.describe(knobs)


def test_a_draft_has_its_layers() -> None:
    made = DRAFT.command(1, PLACE, plan(DRAFT, lower=3, upper=2, sentences=50))
    assert (made.lower, made.upper, made.sentences) == (3, 2, 50)


def test_a_student_has_its_layers_and_is_kept_on_the_way() -> None:
    made = STUDENT.command(1, PLACE, plan(STUDENT, layers="0,4,11", stage=5.0))
    assert isinstance(made, TrainStudent)
    assert (made.retained, made.stages) == ((0, 4, 11), (5.0,))
    assert STUDENT.command(1, PLACE, plan(STUDENT, depth=4)).depth == 4
    assert STUDENT.command(1, PLACE, plan(STUDENT, stage=0.0)).stages == ()
    assert STUDENT.command(1, PLACE, plan(STUDENT, stage=30.0)).stages == (), "after the end there is the end"


def test_models_are_made_from_nothing() -> None:
    made = LANGUAGE_MODEL.command(3, PLACE, plan(LANGUAGE_MODEL, codec="runs/tokenizer/export", sentences=100))
    assert isinstance(made, TrainBundledModel)
    assert (made.recipe, made.codec, made.sentences) == ("lm-mini", "runs/tokenizer/export", 100)
    assert (made.job, made.work, made.minutes, made.half_precision, made.device) == (3, "runs", 20.0, True, "cpu")
    made = TOKENIZER.command(3, PLACE, plan(TOKENIZER))
    assert (made.recipe, made.codec, made.sentences) == ("speech-tokenizer", "", 3400)


def test_larger_models_take_longer() -> None:
    small = replace(INFO, parameters=10_100_000)
    assert (DRAFT.minutes(small), STUDENT.minutes(small)) == (15.0, 45.0)
    assert DRAFT.minutes(replace(INFO, parameters=505_000_000)) == 750


def test_work_folders_tell_trainings_apart() -> None:
    folders = {one.folder("lm-mini", defaults(one.knobs)) for one in TRAININGS}
    assert len(folders) == len(TRAININGS)
    assert STUDENT.folder("lm-mini", defaults(STUDENT.knobs).replace(layers="0,11")) == "lm-mini-student-2"


def test_every_training_is_found_by_its_name_and_says_how_it_goes() -> None:
    for one in TRAININGS:
        assert training(one.name) is one
        first = one.found[0]
        assert first.wording(0.25) in one.progress.format(step=3, found=first.wording(0.25))
