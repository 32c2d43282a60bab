"""One headline per comparison: how much faster B is, or why that is not said."""

from dataclasses import replace

import numpy as np
import pytest

from paretone.models import catalogue
from paretone.setting import compatibility
from paretone.setting.compatibility import ReplacedModel
from paretone.setting.knobs import Values
from paretone.setting.setting import Setting, UsedTechnique
from paretone.setting.take import Measurements, Take, repeated
from paretone.techniques import wording
from paretone_app.state.comparison import Comparison
from paretone_app.state.differences import caution_on_repeating, difference_words, differences, technique_text
from tests.app.presenters import Presenter


def take(seconds: float, audio: float = 2.0, **changes: object) -> Take:
    said = "one", "2026-11-21", "Text.", "anna", Setting("f5-mini", Values(steps=8)), 24000, np.zeros(4800, np.float32)
    return replace(Take(*said, measurements=Measurements(seconds, audio, device="cpu"), machine="here"), **changes)


SEEDED = Setting("f5-mini", Values(steps=8), seed=3)


def compared(one: Take | None, two: Take | None) -> Comparison:
    made = Comparison()
    made.set_a(one)
    made.set_b(two)
    return made


def headline(one: Take | None, two: Take | None) -> str:
    return compared(one, two).headline()


def test_the_headline_compares_real_time_factors_of_finished_takes() -> None:
    assert headline(take(2.0), None) == ""
    assert headline(take(2.0), take(1.0)) == "B is 2.00× as fast as A (one run each)"
    assert headline(take(1.0), take(1.19)) == "B is 1.19× slower than A (one run each)"
    assert headline(take(1.0), take(1.01)) == "B is about as fast as A (one run each)"
    slower = take(2.0, 4.0, setting=Setting("f5-mini", Values(steps=16)))
    assert headline(take(2.0), slower) == "B is 2.00× as fast as A (one run each)", "per second of audio"
    cut = take(1.0, unfinished="cancelled after 12 of 126 passages")
    assert headline(take(2.0), cut) == "No speed-up is given: B was cancelled after 12 of 126 passages."
    assert compared(cut, None).made_with(cut.setting) == (None, None), "a profile quotes no figures of a part"
    one, two = (take(2.0, id=name, fidelity_to="base", checkpoint="b") for name in ("one", "base"))
    here, there = replace(two, setting=SEEDED), replace(two, setting=SEEDED, machine="there")
    assert compared(cut, None).made_with(one.setting, "b", (one, here)) == (one, here)
    assert compared(None, one).made_with(one.setting, "b", (there,)) == (one, None), "their speeds do not compare"
    assert compared(cut, one).made_with(one.setting, "a") == (None, None), "it was made with other weights"
    assert compared(cut, take(2.0)).warning().startswith("A was cancelled after 12 of 126 passages")


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"text": "Another."}, "text"),
        ({"setting": Setting("lm-mini"), "text": "Another."}, "model and text"),
        ({"voice": "bella"}, "voice"),
        ({"machine": "elsewhere"}, "machine"),
    ],
)
def test_it_is_withheld_with_the_reason_where_the_two_do_not_compare(changes: dict, reason: str) -> None:
    assert headline(take(2.0), take(1.0, **changes)) == f"No speed-up is given: A and B differ in {reason}."


def test_the_headline_says_from_how_many_runs_it_is_and_that_the_machine_was_busy() -> None:
    run = Measurements(2.0, 2.0, device="cpu", cpu_seconds=1.0, other_seconds=0.0, cores=2)
    one = repeated(take(9.0), [run] * 5)
    two = repeated(take(9.0), [replace(run, seconds=1.0, cpu_seconds=0.8)] * 5)
    assert headline(one, two) == "B is 2.00× as fast as A (medians of 5 runs)"
    assert compared(take(2.0), None).basis() == ""
    basis = compared(take(2.0), two).basis()
    assert basis.startswith("Compares real-time factors. A: one run, B: median of 5 runs.")
    busy = repeated(take(9.0), [replace(run, other_seconds=2.0)] * 5)
    said = "B is 2.00× as fast as A (medians of 5 runs; the machine was busy during A: 1.25× as fast in CPU time)"
    assert headline(busy, two) == said


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, "A and B are the same take."),
        ({"id": "two"}, "A and B have the same setting, seed, text and voice: there is no difference to hear."),
        ({"setting": SEEDED}, "A and B have the same setting with different seeds: only their noise differs."),
        ({"setting": Setting("f5-mini", Values(steps=4))}, "A and B differ in steps, and not in a technique."),
    ],
)
def test_sides_that_differ_in_no_technique_say_so(changes: dict, said: str) -> None:
    assert compared(take(2.0), take(2.0, **changes)).warning() == said


def test_differences_name_text_and_voice_before_the_setting(presenter: Presenter) -> None:
    chosen = presenter.state.selection
    one = presenter.take(chosen.baseline_setting)
    setting = one.setting.with_technique(UsedTechnique("ditreducio", chosen.knobs("ditreducio")))
    found = differences(one, replace(presenter.take(setting, text="Another."), voice="bella"))
    first = [(each.what, each.left, each.right) for each in found[:2]]
    assert first == [("text", "A text.", "Another."), ("voice", "anna", "bella")]
    assert found[2:] and [each.technique for each in found] == [False, False, *[True] * len(found[2:])]
    assert differences(one, one) == ()
    (own,) = (each for each in differences(one, replace(one, voice="own:me.wav:0123456789abcdef")))
    assert own.right == "me.wav", "the id is for machines"
    one, other = (replace(one, checkpoint=letter * 64) for letter in "ab")
    (found,) = differences(one, other)
    assert (found.what, found.left, found.right, found.technique) == ("weights", repr("a" * 12), repr("b" * 12), False)


def test_what_follows_from_another_model_is_no_difference_of_its_own(presenter: Presenter) -> None:
    one = replace(presenter.take(presenter.state.selection.baseline_setting), checkpoint="a" * 64)
    other = catalogue.entry("lm-mini")
    usual = Setting(other.id, other.options_with())
    found = differences(one, replace(one, setting=usual, checkpoint="b" * 64))
    assert [difference_words(each) for each in found] == [("Model", "F5 mini", "LM mini")]
    taught = replace(usual, options=usual.options.replace(pronunciations="Foo = FOO"))
    both = usual.differences(taught), Setting.from_json(usual.to_json()).differences(taught)
    assert [difference_words(each) for (each,) in both] == [("Pronunciations", "none", "Foo = FOO")] * 2
    there, gone = (replace(one, setting=usual, text=f"A {word} here.") for word in ("foo", "fool"))
    assert [len(differences(each, replace(each, setting=taught))) for each in (there, gone)] == [1, 0], "who says it?"
    name, value = next((name, value) for name, value in usual.options.items() if isinstance(value, float))
    if name in one.setting.options:
        return
    chosen = replace(usual, options=other.options_with(**{name: value + 0.1}))
    assert [each.what for each in differences(one, replace(one, setting=chosen))] == ["model"]
    steps = replace(one.setting, model="megatts3-mini", options={**one.setting.options, "steps": 5})
    assert "steps" in {each.what for each in differences(one, replace(one, setting=steps))}, "it was chosen"


def test_what_will_differ_if_a_take_is_repeated(presenter: Presenter, monkeypatch: pytest.MonkeyPatch) -> None:
    voices = presenter.state.selection.voices
    take = replace(presenter.take(presenter.state.selection.baseline_setting), voice=voices[0].id, checkpoint="a" * 64)
    assert caution_on_repeating(take, voices) == caution_on_repeating(take, voices, "a" * 64) == ""
    weights = f"The take was made with other weights, '{'a' * 12}', than those loaded, '{'b' * 12}'"
    assert caution_on_repeating(take, voices, "b" * 64) == f"{weights}: now it will sound different."
    monkeypatch.setattr(compatibility, "REPLACED", {take.checkpoint: ReplacedModel("f5-mini", "F5 mini", ("slt",))})
    caution = caution_on_repeating(replace(take, voice="gone"), voices)
    assert "earlier weights of this model" in caution and "The voice 'gone' of the take is not there" in caution


def test_techniques_are_named_with_their_value(presenter: Presenter) -> None:
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
