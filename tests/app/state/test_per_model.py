"""Each model has its own selection: nothing of one reaches another, and a model chosen again has what it had."""

import argparse
import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from paretone.commands import arguments, speak
from paretone.models import catalogue
from paretone.models.base import Voice
from paretone.models.voices import own_voice
from paretone.sampling.actions import SkipAction
from paretone.session.commands import LoadModel
from paretone.session.events import JobCancelled, JobFailed, JobFinished, ModelLoaded
from paretone.setting.knobs import defaults
from paretone.setting.setting import Setting
from paretone.techniques import technique
from paretone_app.features.strategy.state import StrategyState
from paretone_app.state.app_state import AppState
from paretone_app.state.jobs import Jobs
from paretone_app.state.model_selection import Remembered, RememberedModel
from tests.app.presenters import INFO

BUNDLED = tuple(one.id for one in catalogue.models() if one.bundled)
FIRST, OTHER, THIRD = "f5-mini", "omni-mini", "lm-mini"


def spoken(model: str) -> tuple[Setting, str]:
    """The setting and the voice that ``paretone speak --model`` uses, by its own arguments."""
    parser = argparse.ArgumentParser()
    speak.declare(parser)
    options = parser.parse_args(["--model", model, "--text", "Hello.", "--out", "out.wav"])
    return arguments.setting(options, model), arguments.voice(options, model).id


@pytest.fixture
def state(qapp) -> AppState:
    return AppState(Jobs(lambda command: None))


def load(state: AppState, model: str, folder: str = "") -> None:
    state.loading.load_model(model, folder)
    entry, number = state.selection.entry, state.jobs.running[-1].number
    own = {"id": model, "title": entry.title, "family": entry.family, "knobs": entry.options}
    info = replace(INFO, **own, mel_flow=entry.mel_flow, guidance=entry.guidance)
    state.follow(ModelLoaded(number, info, 0.1))
    state.jobs.handle(JobFinished(number))


def fail(state: AppState, model: str, folder: str = "") -> None:
    state.loading.load_model(model, folder)
    state.jobs.handle(JobFailed(state.jobs.running[-1].number, "There is nothing."))


def contaminate(state: AppState) -> None:
    """Change whatever a user can change of the chosen model."""
    chosen = state.selection
    for name, value in (("steps", 5), ("guidance", 0.9), ("cross_fade", 0.33), ("speed", 1.4), ("temperature", 0.3)):
        if name in chosen.options:
            chosen.set_option(name, value)
    for one in chosen.techniques:
        chosen.switch(one.name, not chosen.is_used(one.name))
    chosen.choose_voice(chosen.voices[-1].id)


@pytest.mark.parametrize(("before", "model"), [*pairwise((*BUNDLED, BUNDLED[0]))])
def test_a_model_seen_for_the_first_time_is_what_speak_uses(state: AppState, before: str, model: str) -> None:
    load(state, before)
    contaminate(state)
    load(state, model)
    assert (state.selection.baseline_setting, state.selection.speaker.id) == spoken(model)
    used = {one.name for one in state.selection.techniques if state.selection.is_used(one.name)}
    assert used <= {"ditreducio"}, "what every window begins with, where it applies"


def test_a_model_chosen_again_has_what_it_had_and_is_loaded_from_its_folder(state: AppState, tmp_path: Path) -> None:
    chosen, had = state.selection, {}
    for model in BUNDLED:
        load(state, model)
        contaminate(state)
        chosen.set_text(f"{model} speaks.")
        had[model] = chosen.setting, chosen.speaker
    for model in BUNDLED:
        load(state, model)
        assert (chosen.setting, chosen.speaker) == had[model]
    assert chosen.text == f"{BUNDLED[-1]} speaks.", "the text is common"
    load(state, FIRST, str(tmp_path))
    load(state, OTHER)
    assert (state.selection.place(FIRST), state.selection.place(OTHER)) == ((str(tmp_path), ""), ("", ""))
    load(state, "E2TTS_Base", str(tmp_path / "gone"))
    assert state.selection.place("E2TTS_Base") == ("", "") and not state.selection.is_installed("E2TTS_Base")
    load(state, "E2TTS_Base", str(tmp_path))
    load(state, OTHER)
    assert state.selection.is_installed("E2TTS_Base")


def test_a_model_that_cannot_be_loaded_changes_nothing_of_either(state: AppState) -> None:
    load(state, FIRST)
    contaminate(state)
    before = state.selection.setting, state.selection.speaker
    fail(state, OTHER, "/nowhere")
    assert (state.selection.setting, state.selection.speaker) == before
    assert state.selection.place(OTHER) == ("", ""), "it was never loaded from there"
    load(state, OTHER)
    assert state.selection.baseline_setting == spoken(OTHER)[0]


# --- From one session to the next -------------------------------------------------------------------------------------
def again(state: AppState | str) -> tuple[AppState, list[str]]:
    """The next session, and what it says was passed over."""
    made, said = AppState(Jobs(lambda command: None)), []
    made.selection.passed_over.connect(said.append)
    made.selection.recall(state if isinstance(state, str) else state.selection.remembered())
    return made, said


def test_every_model_is_remembered(state: AppState, tmp_path: Path) -> None:
    had = {}
    for model in BUNDLED:
        load(state, model, str(tmp_path) if model == OTHER else "")
        contaminate(state)
        had[model] = state.selection.setting, state.selection.speaker
    load(state, OTHER, str(tmp_path))
    third, said = again(again(state)[0])
    chosen = third.selection
    assert said == [] and chosen.not_recalled is None
    assert (chosen.model_id, chosen.model_folder) == (OTHER, str(tmp_path))
    assert (chosen.setting, chosen.speaker) == had[OTHER]
    for model in BUNDLED:
        load(third, model)
        assert (third.selection.setting, third.selection.speaker) == had[model], model


def test_what_is_common_is_remembered_and_rubbish_does_not_hurt(state: AppState) -> None:
    state.own_voices.add(own_voice("/tmp/me.wav", "That is me."))
    state.selection.set_text("Something else.")
    state.selection.set_seed(99)
    found = again(state)[0].selection
    _, said = again(state.selection.remembered().replace('"model": "f5-mini"', '"model": "f4-mini"'))
    assert said == ["There is no model f4-mini any more; F5 mini is loaded instead."]
    for rubbish in ("", "{", "[]", "7"):
        assert Remembered.from_json(rubbish) is None
        found.recall(rubbish)
    assert (found.text, found.seed, found.voice) == ("Something else.", 99, state.selection.voice)
    assert Remembered.from_json(WHOLE.to_json()) == WHOLE


def test_what_no_longer_exists_is_passed_over_one_by_one_and_said(state: AppState) -> None:
    load(state, FIRST)
    state.selection.set_option("steps", 5)
    state.selection.set_option("guidance", 0.9)
    data = state.selection.remembered()
    for one, other in (
        ('"steps": 5', '"steps": 500000'),
        ('"voice": "anna"', '"voice": "otto"'),
        ('"used": {', '"used": {"warp": true, '),
    ):
        assert data.count(one) == 1
        data = data.replace(one, other)
    found, (said,) = again(data)
    assert found.selection.options["steps"] == found.selection.entry.options_with()["steps"]
    assert found.selection.options["guidance"] == 0.9, "what is permitted stays"
    for one in ("F5 mini does not take Steps 500000", "the voice otto", "no technique warp"):
        assert one in said


@pytest.mark.parametrize("used", ["used", "engaged"])
def test_options_of_no_model_in_particular_reach_none(qapp: object, used: str) -> None:
    """As versions wrote it that had one selection for all models."""
    earlier = {
        "text": "A text.",
        "voice": "ella",
        "own_voices": [["own:me", "me", "/me.wav", "That is me."]],
        "seed": 5,
        "seed_locked": False,
        "options": {"steps": 6, "cross_fade": 0.15},
        "knobs": {"ditreducio": {"threshold": 0.3}},
        used: {"precision": True},
    }
    found, (said,) = again(json.dumps(earlier))
    chosen = found.selection
    assert (chosen.text, chosen.speaker.id, chosen.seed, chosen.seed_locked) == ("A text.", "ella", 5, False)
    assert tuple(chosen.own_voices) == WHOLE.own_voices and chosen.model_id == FIRST
    assert "begin with their defaults" in said and again(found)[1] == [], "it is said once"
    for model in BUNDLED:
        load(found, model)
        assert chosen.baseline_setting == replace(spoken(model)[0], seed=5)
        assert not chosen.is_used("precision")


# --- What follows the selection ---------------------------------------------------------------------------------------
def test_a_strategy_table_stays_with_its_model(state: AppState, tmp_path: Path) -> None:
    strategy = StrategyState(state, tmp_path)
    load(state, FIRST)
    strategy.skip_nothing()
    edited = strategy.table.changed(1, 2, SkipAction.BS)
    strategy.replace_table(edited, "edit")
    strategy.set_threshold(0.35)
    fail(state, "E2TTS_Base")
    assert strategy.table == edited
    load(state, "megatts3-mini")
    assert strategy.table is None, "it belongs to another model"
    assert strategy.threshold == defaults(technique("ditreducio").knobs)["threshold"]
    strategy.skip_nothing()
    load(state, THIRD)
    load(state, FIRST)
    assert (strategy.table, strategy.threshold) == (edited, 0.35)
    load(state, "megatts3-mini")
    assert strategy.table is not None and strategy.table.compatibility.model == "megatts3-mini"


def test_what_was_changed_of_one_model_is_not_undone_in_another(state: AppState, tmp_path: Path) -> None:
    strategy, stack = StrategyState(state, tmp_path), state.undo_stack
    load(state, FIRST)
    state.editing.set_option("steps", 7)
    state.editing.set_knob("steps", "steps", 3)
    state.editing.switch("ditreducio", False)
    state.editing.choose_voice(state.selection.voices[-1].id)
    state.editing.set_seed(8)
    state.own_voices.add(Voice("own:me.wav", "me", "/me.wav", "That is me."))
    strategy.skip_nothing()
    assert stack.count() == 7
    had = state.selection.setting
    load(state, "megatts3-mini")
    before = state.selection.choices
    stack.undo()
    stack.redo()
    assert state.selection.choices == before and stack.count() == 0
    load(state, FIRST)
    assert state.selection.setting == had
    state.editing.set_option("steps", 9)
    fail(state, OTHER)
    stack.undo()
    assert state.selection.options["steps"] == 9, "another model was chosen in between"
    load(state, OTHER)
    restarted, _ = again(state)
    restarted.editing.set_option("steps", 9)
    load(restarted, FIRST)
    before = restarted.selection.choices
    restarted.undo_stack.undo()
    assert restarted.selection.choices == before, "nor what was changed before the model of the last session was loaded"


def test_a_vocoder_in_another_folder_stays_with_its_model(qapp, tmp_path: Path) -> None:
    sent: list[LoadModel] = []
    state = AppState(Jobs(sent.append))
    chosen, elsewhere, wrong = state.selection, tmp_path / "vocos", tmp_path / "bigvgan"
    for folder in (elsewhere, wrong):
        folder.mkdir()

    def wanted(vocoder: Path | None = None) -> str:
        """The vocoder that the engine is asked for."""
        state.loading.load_model("F5TTS_v1_Base", "", "", "cpu", str(vocoder) if vocoder else None)
        return state.jobs.all[-1].command.vocoder

    assert wanted() == "" and wanted(elsewhere) == str(elsewhere)
    state.jobs.handle(JobCancelled(state.jobs.running[0].number))
    number = state.jobs.running[0].number
    state.follow(ModelLoaded(number, replace(INFO, id="F5TTS_v1_Base"), 0.1))
    state.jobs.handle(JobFinished(number))
    assert wanted(wrong) == str(wrong)
    state.jobs.handle(JobFailed(state.jobs.running[-1].number, "That is a BigVGAN."))
    assert chosen.vocoder("F5TTS_v1_Base") == str(elsewhere) == wanted(), "what failed is not kept"
    assert chosen.vocoder(FIRST) == ""
    state.loading.load_model("F5TTS_v1_Base", vocoder="")
    assert state.jobs.all[-1].command.vocoder == "", "its usual one again"
    restarted = AppState(Jobs(sent.append))
    restarted.selection.recall(chosen.remembered())
    assert restarted.selection.vocoder("F5TTS_v1_Base") == str(elsewhere)
    elsewhere.rmdir()
    assert restarted.selection.vocoder("F5TTS_v1_Base") == ""


USED = {"ditreducio": {"threshold": 0.2}}, {"ditreducio": True}, {"guidance_free": "0123"}
MODELS = {
    "f5-mini": RememberedModel("/models/mine", "F5TTS_Base", "anna", {"steps": 4}, *USED),
    "lm-mini": RememberedModel(options={"temperature": 0.5}),
}
MINE = (Voice("own:me", "me", "/me.wav", "That is me."),)
WHOLE = Remembered("A text.", MINE, 7, False, "f5-mini", "cuda", MODELS, vocoders={"F5TTS_Base": "/vocos"})
