"""Which trained weights fit a technique's knobs, and which of them are taken."""

from __future__ import annotations

from dataclasses import replace

from engine.knobs import defaults
from engine.models.base import DraftWeights, ModelInfo, StudentWeights, WeightSet
from engine.setting import Engaged, Setting
from engine.techniques import guidance_free, spade, speculative, technique
from engine.techniques.engagement import engage
from engine.techniques.trained import fitting

FLOW = ModelInfo("f5-mini", "Small", "flow", "s", "here", "0" * 64, "none", "cpu", "float32", 24000, 4, 2, 9, "test")
LANGUAGE = replace(FLOW, id="lm-mini", family="language", branches=1)
DRAFT = DraftWeights("d", "d" * 64, (0, 1, 3), (0, 1), True)
LONG, SHORT, EARLY, OTHER = (
    StudentWeights(path, path * 64, layers, stage, minutes)
    for path, layers, stage, minutes in (
        ("a", (0, 3), "recovered", 18.0),
        ("b", (0, 3), "recovered", 0.6),
        ("c", (0, 3), "minutes:1", 1.0),
        ("e", (0, 1, 3), "recovered", 9.0),
    )
)


def test_cfg_free_weights_of_the_same_weight_fit_the_nearest_first() -> None:
    near, exact = (WeightSet(path, path * 64, weight, "") for path, weight in (("1", 0.67), ("2", 2 / 3)))
    info = replace(FLOW, weight_sets=(WeightSet("0", "0" * 64, 0.5, ""), near, exact))
    knobs = defaults(technique(guidance_free.NAME).knobs).replace(weight=0.667)
    assert fitting(info, guidance_free.NAME, knobs) == (exact, near)
    assert fitting(info, guidance_free.NAME, knobs.replace(weight=0.9)) == ()


def test_students_fit_by_depth_layers_and_stage() -> None:
    info = replace(LANGUAGE, students=(SHORT, LONG, OTHER, EARLY))
    knobs = defaults(technique(spade.NAME).knobs).replace(depth=2)
    assert fitting(info, spade.NAME, knobs) == (LONG, SHORT)
    assert fitting(info, spade.NAME, knobs.replace(recovery=spade.PARTLY)) == (EARLY,)
    assert fitting(info, spade.NAME, knobs.replace(layers="0,1,3")) == (OTHER,)
    assert fitting(info, spade.NAME, knobs.replace(recovery=spade.NONE)) == ()


def test_what_a_setting_names_is_engaged_and_else_the_first_that_fits() -> None:
    info = replace(LANGUAGE, students=(SHORT, LONG), drafts=(DRAFT,))
    knobs = defaults(technique(spade.NAME).knobs).replace(depth=2)
    for artefact, student in (("", LONG), (SHORT.fingerprint, SHORT)):
        setting = Setting("lm-mini").with_technique(Engaged(spade.NAME, knobs, artefact))
        assert engage(info, setting).student == student


def test_drafts_fit_and_students_where_they_draft() -> None:
    info = replace(LANGUAGE, students=(EARLY, LONG), drafts=(DRAFT,))
    knobs = defaults(technique(speculative.NAME).knobs)
    assert fitting(info, speculative.NAME, knobs) == (DRAFT,)
    assert fitting(info, speculative.NAME, knobs.replace(draft="student")) == (LONG, EARLY)
    assert fitting(info, "steps", knobs) == ()
