"""Training weights for few evaluations: what the form asks the engine for, and when Setup offers it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from pytestqt.qtbot import QtBot

from paretone.models.base import IntervalWeights
from paretone.session.events import Prepared
from paretone.setting.knobs import Values, defaults
from paretone.techniques import average_velocity
from paretone.techniques.average_velocity import FORM, METHODS, AverageVelocityRequest
from paretone.training.forms import Place, TrainingPlan
from paretone.training.requests import Trained
from paretone_app.state.differences import weights_title
from tests.app.presenters import INFO, Presenter

NAME = average_velocity.NAME
WEIGHTS = IntervalWeights("own/guidance-1.safetensors", "3" * 64, 4, -1.0, Values(guidance=1.0), METHODS[0])


def test_the_form_asks_for_what_it_says() -> None:
    knobs = defaults(FORM.knobs).replace(method=METHODS[1], teacher_steps=6, sentences=30)
    made = FORM.request(
        Place("f5-mini", "models", "small", "cpu"),
        TrainingPlan(NAME, "speech.csv", "runs", 20.0, True, False, knobs),
    )
    assert isinstance(made, AverageVelocityRequest)
    assert (made.method, made.teacher_steps, made.sentences, dict(made.guidance)) == (METHODS[1], 6, 30, {})
    assert (made.model, made.folder, made.variant, made.manifest, made.work, made.minutes, made.half_precision) == (
        "f5-mini",
        "models",
        "small",
        "speech.csv",
        "runs",
        20.0,
        True,
    )


def test_models_that_cannot_be_trained_say_so() -> None:
    assert {FORM.why_not(replace(INFO, id=one)) for one in ("f5-mini", "megatts3-mini", "MegaTTS3")} == {""}
    assert "cannot be trained here" in FORM.why_not(replace(INFO, id="lm-mini"))
    assert "guidance in its weights already" in FORM.why_not(replace(INFO, trained_guidance=0.5))


def test_models_that_nobody_else_speaks_for_say_sentences_themselves() -> None:
    assert FORM.fitting(INFO) == {"sentences": 0}, "the bundled model learns from the speech that it learnt from"
    assert FORM.fitting(replace(INFO, id="MegaTTS3")) == {"sentences": 200}


def test_of_a_language_model_the_flow_alone_is_trained() -> None:
    language = replace(INFO, id="CosyVoice2-0.5B", parameters=506_000_000, mel_steps=10)
    assert FORM.why_not(language) == ""
    assert FORM.minutes(language) == FORM.minutes(replace(INFO, parameters=71_300_000)) == 348


def test_setup_offers_the_training_until_there_are_weights(tmp_path: Path, qtbot: QtBot) -> None:
    state = Presenter(tmp_path / "calibrations").state
    assert state.availability.training_offer(NAME) is None, "nobody wants them yet"
    state.selection.switch(NAME, True)
    offer = state.availability.training_offer(NAME)
    assert offer is not None and dict(offer.knobs) == {}
    assert "has no average-velocity weights for 2 evaluations" in state.availability.technique_problem(NAME)
    assert state.selection.info is not None
    info = replace(state.selection.info, interval_weights=(WEIGHTS,))
    state.follow(Prepared(9, NAME, Trained(WEIGHTS.path, "It learnt.", Values(), 10, 1.0, {}), info))
    assert state.availability.training_offer(NAME) is None
    assert not state.availability.technique_problem(NAME)


def test_weights_are_called_by_their_guidance() -> None:
    assert weights_title(WEIGHTS) == "guidance 1, displacement (guidance-1)"
