"""In what two takes differ, as the window tells it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from paretone.models import catalogue
from paretone.setting import compatibility
from paretone.setting.compatibility import ReplacedModel
from paretone.setting.knobs import Values
from paretone.setting.setting import Setting, UsedTechnique
from paretone.techniques import wording
from paretone_app.state.differences import (
    caution_on_repeating,
    difference_words,
    differences,
    measured_against,
    technique_text,
)
from tests.app.presenters import Presenter


def test_differences_name_text_and_voice_before_the_setting(tmp_path: Path, qapp) -> None:
    presenter = Presenter(tmp_path)
    one = presenter.take(presenter.state.selection.baseline_setting)
    other = replace(
        presenter.take(
            one.setting.with_technique(UsedTechnique("ditreducio", presenter.state.selection.knobs("ditreducio"))),
            text="Another.",
        ),
        voice="bella",
    )
    found = differences(one, other)
    assert [(each.what, each.left, each.right) for each in found[:2]] == [
        ("text", "A text.", "Another."),
        ("voice", "anna", "bella"),
    ]
    assert [each.technique for each in found[:2]] == [False, False]
    assert found[2:]
    assert all(each.technique for each in found[2:])
    assert differences(one, one) == ()
    (own,) = (each for each in differences(one, replace(one, voice="own:me.wav:0123456789abcdef")))
    assert own.right == "me.wav", "the id is for machines"


def test_weights_are_a_difference_where_both_are_known(tmp_path: Path, qapp) -> None:
    presenter = Presenter(tmp_path)
    unknown = presenter.take(presenter.state.selection.baseline_setting)
    one, other = (replace(unknown, checkpoint=letter * 64) for letter in "ab")
    assert differences(unknown, one) == differences(one, one) == ()
    (found,) = differences(one, other)
    assert (found.what, found.left, found.right, found.technique) == ("weights", repr("a" * 12), repr("b" * 12), False)


def test_what_follows_from_another_model_is_no_difference_of_its_own(tmp_path: Path, qapp) -> None:
    presenter = Presenter(tmp_path)
    one = replace(presenter.take(presenter.state.selection.baseline_setting), checkpoint="a" * 64)
    other = catalogue.entry("lm-mini")
    usual = Setting(other.id, other.options_with())
    found = differences(one, replace(one, setting=usual, checkpoint="b" * 64))
    assert [difference_words(each) for each in found] == [("Model", "F5 mini", "LM mini")]
    name, value = next((name, value) for name, value in usual.options.items() if isinstance(value, float))
    if name in one.setting.options:
        return
    chosen = replace(usual, options=other.options_with(**{name: value + 0.1}))
    assert [each.what for each in differences(one, replace(one, setting=chosen))] == ["model"]
    steps = replace(one.setting, model="megatts3-mini", options={**one.setting.options, "steps": 5})
    assert "steps" in {each.what for each in differences(one, replace(one, setting=steps))}, "it was chosen"


def test_what_will_be_different_when_a_take_is_made_again_is_said(
    tmp_path: Path, qapp, monkeypatch: pytest.MonkeyPatch
) -> None:
    presenter = Presenter(tmp_path)
    voices = presenter.state.selection.voices
    take = replace(presenter.take(presenter.state.selection.baseline_setting), voice=voices[0].id, checkpoint="a" * 64)
    assert caution_on_repeating(take, voices) == caution_on_repeating(take, voices, "a" * 64) == ""
    assert caution_on_repeating(take, voices, "b" * 64) == (
        f"The take was made with other weights, '{'a' * 12}', than those loaded, '{'b' * 12}': now it will sound "
        "different."
    )
    monkeypatch.setattr(compatibility, "REPLACED", {take.checkpoint: ReplacedModel("f5-mini", "F5 mini", ("slt",))})
    assert caution_on_repeating(replace(take, voice="gone"), voices) == (
        "The take was made with earlier weights of this model: now it will sound different. "
        "The voice 'gone' of the take is not there; another one is selected."
    )


def test_what_was_chosen_otherwise_than_usual_is_told(tmp_path: Path, qapp) -> None:
    state = Presenter(tmp_path).state
    plain = state.selection.baseline_setting
    spade, ssd = state.selection.knobs("spade"), state.selection.knobs("speculative")
    heard = [
        technique_text(plain.with_technique(UsedTechnique("spade", spade.replace(recovery=stage))))
        for stage in ("none", "partly", "recovered")
    ]
    kept = "SPADE (fewer layers): half of the layers"
    assert heard == [f"{kept}, pruned", f"{kept}, briefly retrained", kept]
    deep = technique_text(plain.with_technique(UsedTechnique("spade", spade.replace(depth=8))))
    assert deep == "SPADE (fewer layers): 8 layers kept"
    assert technique_text(plain.with_technique(UsedTechnique("speculative", ssd.replace(draft="student")))).endswith(
        "β = 0, shallower student"
    )


def test_techniques_are_named_with_their_value(tmp_path: Path, qapp) -> None:
    presenter = Presenter(tmp_path)
    state = presenter.state
    for name in ("steps", "precision"):
        state.selection.switch(name, True)
    state.selection.switch("ditreducio", False)
    pair = presenter.take(state.selection.baseline_setting), presenter.take(state.selection.setting, "two")
    assert technique_text(state.selection.setting) == "Precision: bfloat16 + Step pruning: 7 steps"
    plain = state.selection.baseline_setting
    for method, said in (("ab2", "Adams–Bashforth 2"), ("unipc", "Predictor–corrector")):
        used = UsedTechnique("multistep", Values(method=method))
        assert technique_text(plain.with_technique(used)) == f"Multistep solver: {said}", "choices by their titles"
    said = {wording(one): (one.left, one.right) for one in differences(*pair)}
    assert said == {"Precision": ("off", "bfloat16"), "Step pruning": ("off", "7 steps")}
    assert all(one.technique for one in differences(*pair))
    assert measured_against(pair[1], pair[0]).fidelity_to == pair[0].id
