"""Searching a grid with a model: on a velocity that is a formula, and on a real one."""

import dataclasses
import math
from pathlib import Path

import pytest

from paretone.errors import Cancelled, PlainError, SettingError
from paretone.measure.evaluation import judges
from paretone.measure.fidelity import with_difference
from paretone.measure.metrics import METRICS, NEITHER
from paretone.models.base import Script, Utterance
from paretone.models.megatts3.config import OPTIONS as MEGA_OPTIONS
from paretone.observer import Observer
from paretone.sampling.grid_search import METHODS, Trial
from paretone.setting.knobs import Values
from paretone.setting.setting import Setting, UsedTechnique
from paretone.setting.take import Metrics
from paretone.speaking import scripted, synthesise
from paretone.techniques.searched_grid import DISTANCE, FIDELITY, OBJECTIVES, figure_of
from paretone.techniques.searched_grid import searching as searching_module
from paretone.techniques.searched_grid.searching import MANY, many_steps, search_grid, start_grids
from tests.engine.analytic_flow import AnalyticFlow
from tests.engine.small_speech import VOICE, setting
from tests.engine.small_speech import load as model
from tests.engine.techniques.ditreducio.observing import Recorder
from tests.engine.techniques.searched_grid.test_searched_grid import NAME
from tests.workload import workload

UTTERANCES = (Utterance("One.", VOICE), Utterance("Another.", VOICE))


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PARETONE_DATA", str(tmp_path))
    return tmp_path


def searching(evaluations: int = 4, *others: UsedTechnique, **knobs: object) -> Setting:
    chosen = setting(8).with_technique(UsedTechnique(NAME, Values(evaluations=evaluations, **knobs)))
    for one in others:
        chosen = chosen.with_technique(one)
    return chosen


@pytest.mark.parametrize("method", workload(METHODS, METHODS[:1]))
def test_it_finds_nearer_grids_than_those_that_anybody_has(method: str) -> None:
    flow = AnalyticFlow()
    found = search_grid(flow, UTTERANCES, searching(4, search=method, passes=3), Observer())
    starts = {one.title: one.trial.value[0] for one in found.starts}
    assert set(starts) == {"sway −1", "even"} and start_grids(7)[0][0] == "EPSS 7"
    assert found.best.value[0] < 0.9 * starts["sway −1"] and found.best.value[0] < 0.8 * starts["even"]
    assert found.grid.times == found.best.times and found.grid.steps == 4
    assert found.grid.solver == "Euler" and "on 2 sentences" in found.grid.origin
    used = searching(4).with_technique(UsedTechnique(NAME, Values(evaluations=4), found.grid.fingerprint))
    ends = [flow.last_state(scripted(flow, one.text, VOICE, used, (found.grid,))) for one in UTTERANCES]
    many = [flow.last_state(flow.script(one.text, VOICE, many_steps(flow, searching(4)))) for one in UTTERANCES]
    distances = [abs(end - other).mean() for end, other in zip(ends, many, strict=True)]
    assert sum(distances) / 2 == pytest.approx(found.best.value[0])


def test_a_real_model_is_searched_within_the_foreseen_evaluations(monkeypatch: pytest.MonkeyPatch) -> None:
    watch, said, read = Recorder(), model(), []
    script = said.script
    monkeypatch.setattr(said, "script", lambda text, *more: (read.append(text), script(text, *more))[1])
    found = search_grid(said, UTTERANCES[:1], searching(2, passes=1), watch)
    assert found.trials > 2 and read == ["One.", "One."], "once for many steps, and once for all trials"
    assert found.best.value <= min(one.trial.value for one in found.starts)
    done, total = zip(*watch.progressed, strict=True)
    assert list(done) == sorted(done) and done[-1] == total[-1]
    assert watch.statuses[0] == f"Speaking with {MANY} steps" and watch.statuses[-1] == "Pass 1, time 1 of 1"
    assert total[0] <= MANY + 2 * (found.trials + 1)


# --- Cancelling and going on ------------------------------------------------------------------------------------------
def test_it_stops_within_a_step_and_noise_has_no_end_point() -> None:
    flow = AnalyticFlow()
    with pytest.raises(Cancelled):
        search_grid(flow, UTTERANCES, searching(), Recorder(MANY + 10))
    assert flow.evaluations <= MANY + 10
    overshoot = next(knob for knob in MEGA_OPTIONS if knob.name == "overshoot")
    flow.info = dataclasses.replace(flow.info, knobs=(*flow.info.knobs, overshoot))
    with pytest.raises(SettingError, match="set Overshoot to 0"):
        search_grid(flow, UTTERANCES, searching(), Observer())
    chosen = searching()
    still = dataclasses.replace(chosen, options=chosen.options.replace(overshoot=0.0))
    assert search_grid(flow, UTTERANCES, still, Observer()).grid.compatibility.sampling["overshoot"] == 0.0


def test_an_interrupted_search_goes_on_where_it_was(data: Path) -> None:
    whole = AnalyticFlow()
    expected = search_grid(whole, UTTERANCES, searching(), Observer())
    first, second = AnalyticFlow(), AnalyticFlow()
    with pytest.raises(Cancelled):
        search_grid(first, UTTERANCES, searching(), Recorder(whole.evaluations // 2))
    (journal,) = (data / "grid-searches").glob("*.jsonl")
    with journal.open("a") as file:
        file.write("[[0.0, 0.5")
    tried: list[Trial] = []
    found = search_grid(second, UTTERANCES, searching(), Observer(), tried.append)
    assert dataclasses.replace(found, seconds=0.0) == dataclasses.replace(expected, seconds=0.0)
    assert len(tried) == expected.trials
    assert second.evaluations < 0.75 * whole.evaluations
    assert not list((data / "grid-searches").glob("*.jsonl")), "it has ended"


# --- Judges -----------------------------------------------------------------------------------------------------------
def test_a_judges_figure_is_searched_by_and_ties_go_to_the_nearer() -> None:
    """The small model says noise: its pitch range is nothing, whatever the grid, so that the distance decides."""
    found = search_grid(model(), UTTERANCES[:1], searching(2, passes=1, objective="pitch_range"), Observer())
    assert len(found.best.value) == 2 and found.unit.startswith("Pitch range")
    assert found.best.value <= min(one.trial.value for one in found.starts)
    assert figure_of((-0.2, 0.1), "pitch_range") == 0.2 and figure_of((0.3,), "distance") == 0.3
    assert figure_of((0.1, 0.5), "word_error_rate") == 0.1


@pytest.mark.parametrize("name", workload(FIDELITY, FIDELITY[:1]))
def test_figures_of_the_sound_are_against_what_many_steps_say(name: str) -> None:
    """The small model has no voice, hence no pitch that could differ: the distance decides then."""
    said = model()
    found = search_grid(said, UTTERANCES[:1], searching(2, passes=1, objective=name), Recorder())
    value, apart = found.best.value
    assert found.unit.endswith(f"to what {MANY} steps say")
    assert found.best.value <= min(one.trial.value for one in found.starts) and apart > 0
    used = searching(2).with_technique(UsedTechnique(NAME, Values(evaluations=2), found.grid.fingerprint))
    near = synthesise(said, "One.", VOICE, used, (found.grid,))
    many = said.speak(said.script("One.", VOICE, many_steps(said, searching(2))))
    sounds = [(one.trace.mel, (one.samples, one.sample_rate)) for one in (many, near)]
    distance, metrics = with_difference(Metrics(), *sounds)
    expected = distance if name == "log_mel_distance" else getattr(metrics, name)
    assert value == pytest.approx(math.inf if expected is None else expected, rel=1e-5)
    assert apart == pytest.approx(distance, rel=1e-5)


def test_the_spread_over_seeds_is_of_several_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(searching_module, "SEEDS", 2)
    spoken: list[int] = []
    said = model()
    speak = said.speak

    def heard(script: Script, *more: object) -> object:
        spoken.append(script.seed)
        return speak(script, *more)

    monkeypatch.setattr(said, "speak", heard)
    watch = Recorder()
    found = search_grid(said, UTTERANCES[:1], searching(2, passes=1, objective="diversity"), watch)
    assert spoken == [0, 1] * found.trials
    assert watch.progressed[-1][0] == watch.progressed[-1][1] and found.unit == "Diversity (nat. log)"
    assert figure_of((-0.05, 0.1), "diversity") == 0.05, "more is better"


def test_every_quality_figure_can_be_searched_by() -> None:
    quality = {one.name for one in METRICS if one.better != NEITHER and (one.judge or one.relative)}
    assert set(OBJECTIVES) == {DISTANCE, *quality} - {"speed_up"}


def test_a_judge_that_is_not_there_is_said_before_anything_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judges, "find_spec", lambda name: None)
    flow = AnalyticFlow()
    with pytest.raises(PlainError, match="not installed"):
        search_grid(flow, UTTERANCES, searching(objective="word_error_rate"), Observer())
    assert flow.evaluations == 0
