"""Which trained weights fit a technique's knobs, and which of them are taken."""

from __future__ import annotations

from dataclasses import replace

import pytest

from paretone.errors import SettingError
from paretone.models.base import DraftWeights, ModelInfo, StudentWeights, WeightSet
from paretone.setting.knobs import Values, defaults
from paretone.setting.setting import Setting, UsedTechnique
from paretone.techniques import guidance_free, resolve, spade, speculative, technique
from paretone.techniques.trained import fitting, named

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


def test_weights_fit_the_knobs_and_the_named_ones_are_used() -> None:
    near, exact = (WeightSet(path, path * 64, weight, "") for path, weight in (("1", 0.67), ("2", 2 / 3)))
    info = replace(FLOW, weight_sets=(WeightSet("0", "0" * 64, 0.5, ""), near, exact))
    knobs = defaults(technique(guidance_free.NAME).knobs).replace(weight=0.667)
    assert fitting(info, guidance_free.NAME, knobs) == (exact, near)
    assert fitting(info, guidance_free.NAME, knobs.replace(weight=0.9)) == ()
    info = replace(LANGUAGE, students=(SHORT, LONG, OTHER, EARLY))
    knobs = defaults(technique(spade.NAME).knobs).replace(depth=2)
    assert fitting(info, spade.NAME, knobs) == (LONG, SHORT)
    assert fitting(info, spade.NAME, knobs.replace(recovery=spade.PARTLY)) == (EARLY,)
    assert fitting(info, spade.NAME, knobs.replace(layers="0,1,3")) == (OTHER,)
    assert fitting(info, spade.NAME, knobs.replace(recovery=spade.NONE)) == ()
    info = replace(LANGUAGE, students=(EARLY, LONG), drafts=(DRAFT,))
    knobs = defaults(technique(speculative.NAME).knobs)
    assert fitting(info, speculative.NAME, knobs) == (DRAFT,)
    assert fitting(info, speculative.NAME, knobs.replace(draft="student")) == (LONG, EARLY)
    assert fitting(info, "steps", knobs) == ()
    info = replace(LANGUAGE, students=(SHORT, LONG), drafts=(DRAFT,))
    knobs = defaults(technique(spade.NAME).knobs).replace(depth=2)
    for artefact, student in (("", LONG), (SHORT.fingerprint, SHORT)):
        setting = Setting("lm-mini").with_technique(UsedTechnique(spade.NAME, knobs, artefact))
        assert resolve(info, setting).weights == student


# --- Named by people --------------------------------------------------------------------------------------------------
TWO = DraftWeights("/own/draft-2.safetensors", "abcd" * 16, (0, 1), (0, 1), True)
THREE = DraftWeights("/own/draft-3.safetensors", "abce" * 16, (0, 1, 3), (0, 1), True)
SIX = StudentWeights("/own/student-3.safetensors", "1234" * 16, (0, 1, 3), "recovered", 9.0)
BEGUN = StudentWeights("/own/student-2.safetensors", "5678" * 16, (0, 3), "minutes:1", 1.0)
COMPANIONS = replace(LANGUAGE, title="LM", drafts=(TWO, THREE), students=(SIX, BEGUN))


@pytest.mark.parametrize("name", ["draft-3", "/own/x/../draft-3.safetensors", "ABCEABCE"])
def test_weights_are_named_by_their_file_or_fingerprint(name: str) -> None:
    found = named(COMPANIONS, UsedTechnique(speculative.NAME, Values(tolerance=0.3), name))
    assert found.artefact == THREE.fingerprint
    assert found.knobs == defaults(technique(speculative.NAME).knobs).replace(tolerance=0.3, draft="layers")
    assert resolve(COMPANIONS, Setting("lm-mini").with_technique(found)).draft == THREE


def test_knobs_that_are_left_open_are_as_the_weights_want_them() -> None:
    drafting = named(COMPANIONS, UsedTechnique(speculative.NAME, Values(), "student-3"))
    assert (drafting.artefact, drafting.knobs["draft"]) == (SIX.fingerprint, "student")
    speaking = named(COMPANIONS, UsedTechnique(spade.NAME, Values(), "student-2"))
    assert (speaking.artefact, speaking.knobs["depth"], speaking.knobs["recovery"]) == (BEGUN.fingerprint, 2, "partly")
    half = WeightSet("/own/w-0.50.safetensors", "9" * 64, 0.5, "distillation")
    free = named(replace(FLOW, weight_sets=(half,)), UsedTechnique(guidance_free.NAME, Values(), "w-0.50"))
    assert (free.artefact, free.knobs["weight"]) == (half.fingerprint, 0.5)
    by_hand = named(COMPANIONS, UsedTechnique(spade.NAME, Values(layers="0,1,3"), "student-3"))
    assert (by_hand.artefact, by_hand.knobs["layers"]) == (SIX.fingerprint, "0,1,3")


@pytest.mark.parametrize(
    ("technique", "knobs", "name", "words"),
    [
        (
            speculative,
            {},
            "draft-4",
            "LM has no weights named 'draft-4' for SSD (speculative decoding); there are draft-2 (",
        ),
        (speculative, {}, "abc", "no weights named 'abc'"),
        (spade, {}, "draft-3", "no weights named 'draft-3' for SPADE"),
        (speculative, {"draft": "student"}, "draft-3", "draft-3 does not fit draft=student; omit that"),
        (spade, {"layers": "0,1"}, "student-3", "does not fit layers=0,1"),
    ],
)
def test_what_names_no_weights_is_said(technique: object, knobs: dict[str, object], name: str, words: str) -> None:
    with pytest.raises(SettingError) as error:
        named(COMPANIONS, UsedTechnique(technique.NAME, Values(knobs), name))
    assert words in str(error.value)


def test_names_that_are_there_twice_or_nowhere_are_said() -> None:
    own = replace(TWO, path="/elsewhere/draft-2.safetensors", fingerprint="ef01" * 16)
    info = replace(COMPANIONS, drafts=(own, TWO, replace(THREE, path="/copy/draft-2.safetensors")))
    listed = r"several weights named 'draft-2' .* there are draft-2 \(ef01ef01\), draft-2 \(abcdabcd\)"
    with pytest.raises(SettingError, match=listed):
        named(info, UsedTechnique(speculative.NAME, Values(), "draft-2"))
    assert named(info, UsedTechnique(speculative.NAME, Values(), "ef01")).artefact == own.fingerprint
    # Copies of the same file are the same weights.
    copied = replace(COMPANIONS, drafts=(TWO, replace(TWO, path="/copy/draft-2.safetensors")))
    assert named(copied, UsedTechnique(speculative.NAME, Values(), "draft-2")).artefact == TWO.fingerprint
    with pytest.raises(SettingError, match=r"has no weights for SPADE \(fewer layers\) yet; train some first"):
        named(replace(COMPANIONS, students=()), UsedTechnique(spade.NAME, Values(), "student-2"))
