"""A technique in a package of its own works everywhere: in lists, in Setup, in studies, in profiles, in takes."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import soundfile
import torch
from PySide6.QtCore import QSettings
from pytestqt.qtbot import QtBot

from paretone import cli
from paretone.errors import ProfileError, SettingError
from paretone.models.catalogue import voice
from paretone.sampling.flow import euler_steps, sampling_grid
from paretone.session.engine_thread import EngineThread
from paretone.setting.knobs import Values
from paretone.setting.plan import Part
from paretone.setting.profile import Profile
from paretone.setting.setting import Setting, UsedTechnique
from paretone.speaking import synthesise
from paretone.studies.running import FINISHED
from paretone.studies.store import Store
from paretone.techniques import conflict, problem, problems, registry, resolve, technique
from paretone_app.features.setup.choices import ModelActions
from paretone_app.features.setup.panel import SetupPanel
from paretone_app.shell.colours import LIGHT
from paretone_app.shell.theme import Theme
from paretone_app.shell.window import MainWindow
from tests.app.acting import acts_of
from tests.app.presenters import Presenter
from tests.engine import small_speech, speaking
from tests.engine.small_language import write_model
from tests.engine.small_speech import VOICE, setting
from tests.engine.studies.small import finished, study
from tests.plugins.writing import written

AB, MIN_P = "adams_bashforth", "min_p"


def stepping(steps: int = 4, **knobs: float) -> Setting:
    return setting(steps).with_technique(UsedTechnique(AB, Values(knobs)))


def model():
    return small_speech.load("small", "", "", "cpu", lambda text: None, lambda: None)


def samples(speech, of: Setting) -> np.ndarray:
    return synthesise(speech, "One.", VOICE, of).samples


# --- Lists ------------------------------------------------------------------------------------------------------------
def test_the_command_line_lists_them(plugins: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["models", "--techniques"]) == 0
    listed = capsys.readouterr().out
    assert AB in listed and "Follows the last two velocities" in listed and f"{MIN_P}:share" in listed
    assert "F5 mini" not in listed, "models are not asked for"
    assert cli.main(["models", "--json"]) == 0
    names = [one["name"] for one in json.loads(capsys.readouterr().out)["techniques"]]
    assert names[-4:] == [AB, "entropy_bound", "guidance_rescale", MIN_P], "after ours"


def test_setup_offers_each_with_its_knobs(plugins: Path, tmp_path: Path, qtbot: QtBot) -> None:
    presenter = Presenter(tmp_path)
    panel = SetupPanel(presenter.state, LIGHT, acts_of(ModelActions))
    qtbot.addWidget(panel)
    for name, model_id in ((AB, "f5-mini"), (MIN_P, "lm-mini"), ("entropy_bound", "omni-mini")):
        presenter.state.loading.load_model(model_id)
        declared, group = technique(name), panel.techniques.groups[name]
        assert group.controls.knobs == declared.knobs
        presenter.state.selection.switch("ditreducio", False)
        presenter.state.selection.switch(name, True)
        knob = declared.knobs[0].name
        presenter.state.selection.set_knob(name, knob, 0.5)
        assert presenter.state.selection.setting.technique(name).knobs == Values({knob: 0.5})
        assert presenter.state.availability.technique_problem(name) == ""


# --- Speech -----------------------------------------------------------------------------------------------------------
def test_the_step_is_second_order(plugins: Path) -> None:
    """On x' = −x, four times as many steps leave a sixteenth of the error, where Euler's leave a quarter."""

    def error(steps: int, weight: float) -> float:
        times = sampling_grid(steps, "uniform", 0.0)
        follow = Part.of("paretone_adams_bashforth:steps", weight=weight).make(times, euler_steps(times))
        state = torch.ones(1, dtype=torch.float64)
        for step in range(steps):
            state = follow(state, -state, step)
        return abs(state.item() - np.exp(-1))

    assert error(20, 1.0) / error(80, 1.0) > 12
    assert error(20, 0.0) / error(80, 0.0) < 5


def test_flow_models_speak_with_it(plugins: Path) -> None:
    speech = model()
    plain = samples(speech, setting(4))
    assert np.array_equal(samples(speech, stepping(weight=0.0)), plain), "Euler's step"
    assert not np.array_equal(samples(speech, stepping()), plain)
    assert speech.info.family == "flow" and problem(speech.info, stepping()) is None
    midpoint = replace(stepping(), model="f5-mini", options=Values(solver="midpoint"))
    assert "choose the Euler solver" in str(conflict(midpoint, AB))
    both = stepping().with_technique(UsedTechnique("ditreducio"))
    with pytest.raises(SettingError, match="do without Adams–Bashforth step"):
        resolve(speech.info, both)


def test_language_models_speak_with_it(plugins: Path, tmp_path: Path) -> None:
    """With a share of 1 only the likeliest token is left, whatever is drawn."""
    speech = speaking.load(write_model(tmp_path / "model"))
    drawn = speaking.setting(UsedTechnique(MIN_P, Values(share=1.0)), seed=2)
    first, greedy = (
        speaking.spoken(speech, one).trace.decoding.tokens for one in (drawn, speaking.setting(temperature=0.0, seed=2))
    )
    assert first and first == greedy
    assert resolve(speech.info, drawn).sampler == Part.of("paretone_min_p:MinP", share=1.0)


# --- Studies ----------------------------------------------------------------------------------------------------------
def test_a_study_sweeps_its_knob(plugins: Path, tmp_path: Path) -> None:
    chosen = study(grid={f"{AB}.weight": ["off", 0.5, 1.0]}, sentences=["One sentence."])
    assert finished(tmp_path / "s", chosen) == FINISHED
    with Store(tmp_path / "s") as store:
        assert len(list(store.takes())) == 3


# --- Profiles ---------------------------------------------------------------------------------------------------------
def test_a_profile_of_it_is_spoken_and_without_the_plug_in_says_which(
    plugins: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    speech = small_speech.load("f5-mini", "", "", "cpu", lambda text: None, lambda: None)
    monkeypatch.setattr("paretone.models.load_model", lambda name, **more: speech)
    path, out = tmp_path / "p.json", tmp_path / "out.wav"
    Profile.of(replace(stepping(), model="f5-mini"), speech.info).save(path)
    of = Profile.load(path).setting
    assert of.technique(AB).knobs == Values(weight=1.0)
    speak = ["speak", "--profile", str(path), "--text", "One.", "--out", str(out), "--quiet"]
    assert cli.main(speak) == 0
    here = synthesise(speech, "One.", voice("", "f5-mini"), of)
    assert np.array_equal(soundfile.read(out, dtype="float32")[0], here.samples)
    monkeypatch.setattr(sys, "path", [one for one in sys.path if one != str(plugins)])
    importlib.invalidate_caches()
    registry.registry.cache_clear()
    assert cli.main(speak) == ProfileError.exit_code
    said = capsys.readouterr().err
    assert "setting.techniques[0].technique: There is no technique named 'adams_bashforth'" in said
    assert "install the plug-in" in said


# --- What goes wrong --------------------------------------------------------------------------------------------------
def test_the_window_says_which_plug_in_was_left_out(
    tmp_path: Path, visible: Callable[[Path], None], theme: Theme, qtbot: QtBot
) -> None:
    (tmp_path / "site").mkdir()
    written(tmp_path / "site", "broken", "raise RuntimeError('no luck')")
    written(tmp_path / "site", "second", "raise RuntimeError('no luck')")
    visible(tmp_path / "site")
    settings = QSettings(str(tmp_path / "window.ini"), QSettings.Format.IniFormat)
    window = MainWindow(theme, settings, tmp_path / "data", lambda post: EngineThread(post, small_speech.load))
    window.features["setup"].engine_starts()
    said = window.notices.banner.text
    assert said.startswith(problems()[0]) and said.endswith("1 more: Help › Check installation… lists them.")
    with qtbot.waitSignal(window.closed):
        window.close()
