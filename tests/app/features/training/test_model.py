"""Each training asks the engine for what its form says."""

from __future__ import annotations

from dataclasses import replace

import pytest

from paretone.models.catalogue import entry
from paretone.session.jobs import preparation_for
from paretone.setting.knobs import defaults
from paretone.techniques import guidance_free
from paretone.techniques.guidance_free import FORM as GUIDANCE_FREE
from paretone.techniques.guidance_free import GuidanceFreeRequest
from paretone.techniques.spade import FORM as STUDENT
from paretone.techniques.spade import StudentRequest
from paretone.techniques.speculative import FORM as DRAFT
from paretone.techniques.speculative import DraftRequest
from paretone.training.forms import Place, TrainingForm, TrainingPlan, training_forms
from paretone_app.features.training.model import figure_wording, training
from tests.app.presenters import INFO

PLACE = Place("lm-mini", "models", "small", "cpu")


def plan(one: TrainingForm, **knobs: object) -> TrainingPlan:
    return TrainingPlan(one.name, "speech.csv", "runs", 20.0, True, False, defaults(one.knobs).replace(**knobs))


@pytest.mark.parametrize(("one", "kind"), [(GUIDANCE_FREE, GuidanceFreeRequest), (DRAFT, DraftRequest)])
def test_what_all_have_in_common_is_passed_on(one: TrainingForm, kind: type) -> None:
    made = one.request(PLACE, plan(one))
    assert type(made) is kind
    assert (made.model, made.folder, made.device) == ("lm-mini", "models", "cpu")
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
    assert GUIDANCE_FREE.remark(knobs) == f"Equals guidance {guidance.symbol} = w / (1 − w) = 1.00."
    assert f"guidance {guidance.symbol} = 1.00" in guidance_free.describe(knobs)


def test_a_draft_has_its_layers() -> None:
    made = DRAFT.request(PLACE, plan(DRAFT, lower=3, upper=2, sentences=50))
    assert (made.lower, made.upper, made.sentences) == (3, 2, 50)


def test_a_student_has_its_layers_and_is_kept_on_the_way() -> None:
    made = STUDENT.request(PLACE, plan(STUDENT, layers="0,4,11", stage=5.0))
    assert isinstance(made, StudentRequest)
    assert (made.retained, made.stages) == ((0, 4, 11), (5.0,))
    assert STUDENT.request(PLACE, plan(STUDENT, depth=4)).depth == 4
    assert STUDENT.request(PLACE, plan(STUDENT, stage=0.0)).stages == ()
    assert STUDENT.request(PLACE, plan(STUDENT, stage=30.0)).stages == (), "after the end there is the end"


def test_techniques_carry_out_what_they_are_asked_to_train() -> None:
    for one in training_forms():
        found = preparation_for(one.name, one.request(PLACE, plan(one)))
        assert found.finds_weights and not found.on_loaded_model
    assert GUIDANCE_FREE.request(PLACE, plan(GUIDANCE_FREE)).variant == "small"
    assert GUIDANCE_FREE.request(replace(PLACE, vocoder="/vocos"), plan(GUIDANCE_FREE)).vocoder == "/vocos"


def test_larger_models_take_longer() -> None:
    small = replace(INFO, parameters=10_100_000)
    assert (DRAFT.minutes(small), STUDENT.minutes(small)) == (15.0, 45.0)
    assert DRAFT.minutes(replace(INFO, parameters=505_000_000)) == 750


def test_work_folders_tell_trainings_apart() -> None:
    folders = {one.folder("lm-mini", defaults(one.knobs)) for one in training_forms()}
    assert len(folders) == len(training_forms())
    assert STUDENT.folder("lm-mini", defaults(STUDENT.knobs).replace(layers="0,11")) == "lm-mini-student-2"


def test_every_training_is_found_by_its_name_and_says_how_it_goes() -> None:
    for one in training_forms():
        assert training(one.name) is one
        first = one.found[0]
        assert figure_wording(first, 0.25) in one.progress.format(step=3, found=figure_wording(first, 0.25))


def test_who_speaks_what_is_learnt_from_is_explained() -> None:
    info = replace(INFO, id="f5-mini", text_front_end="natural phones", parameters=8_200_000)
    said = [one.estimate(info, True) for one in training_forms() if info.family in one.families]
    naming = [one for one in said if "hibari" in one]
    assert len(naming) >= 2
    assert all("the speech synthesiser that the bundled models learned from" in one for one in naming)
    assert all(one.endswith(".") for one in said if one)
