"""Search of a grid with a loaded model, and the journal of a search.

The journal stores the values of tried grids, so that an interrupted search can resume: one file per search in the data
folder, deleted at its end. Searches are deterministic: with all values stored, a search repeats its path at once.
"""

from __future__ import annotations

import hashlib
import json
import math
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from statistics import fmean
from typing import Any

import numpy as np

from paretone.errors import SettingError
from paretone.files import append_line
from paretone.measure.evaluation.judges import Verdict, judge_named
from paretone.measure.fidelity import Sounded, with_difference
from paretone.measure.metrics import HIGHER, estimate, metric
from paretone.models.base import FlowModel, SpeechModel, Synthesis, Utterance, flow_model
from paretone.observer import SILENT, Observer, Passing, StepReport, Work
from paretone.paths import data_folder
from paretone.reading import parsed_json, read_text
from paretone.sampling.flow import sampling_grid
from paretone.sampling.grid_search import OPTIMAL, Times, Trial, Value, most_trials, rounded, search
from paretone.sampling.schedules import effective_spacing
from paretone.setting.knobs import checked
from paretone.setting.plan import with_flow_options
from paretone.setting.setting import Setting, UsedTechnique
from paretone.setting.take import Metrics
from paretone.techniques import compatibility_of, resolve
from paretone.techniques.base import JobTask
from paretone.techniques.resolving import knobs_under, without_slots
from paretone.techniques.searched_grid import (
    DISTANCE,
    FIDELITY,
    NAME,
    PlacedGrid,
    Searched,
    Start,
    placed_for,
    solver_of,
)
from paretone.wording import counted

MANY = 64
"""Steps of the reference run, from whose end point distances are measured."""
SEEDS = 3
"""Takes per sentence, for metrics of spread over seeds."""


class _Scripts:
    """Scripts of utterances under trials, which differ in their grids: a text is read once per seed."""

    def __init__(self, model: FlowModel, observer: Observer = SILENT) -> None:
        self._model, self._observer = model, observer
        self._read: dict[tuple[Utterance, int], Any] = {}

    def of(self, one: Utterance, setting: Setting, grid: PlacedGrid) -> Any:
        plan = resolve(self._model.info, setting, (grid,))
        key = one, setting.seed
        if key not in self._read:
            self._read[key] = self._model.script(one.text, one.voice, plan, self._observer)
        return self._model.replanned(self._read[key], plan, self._observer)

    def spoken(self, one: Utterance, setting: Setting, grid: PlacedGrid) -> Synthesis:
        return self._model.speak(self.of(one, setting, grid), self._observer)


class Distance:
    """Mean absolute difference of the last states of new speech, from the same noise, mean over the utterances."""

    unit = f"mean absolute difference of the last state to that of {MANY} steps"

    def __init__(
        self,
        model: FlowModel,
        utterances: Sequence[Utterance],
        setting: Setting,
        step: Callable[[], None],
        observer: Observer = SILENT,
    ) -> None:
        """Run the model with many steps. ``step`` is called after each and may raise to stop."""
        self._model, self._utterances, self._scripts = model, utterances, _Scripts(model, Passing(observer))
        many = many_steps(model, setting)
        self._ends = [model.last_state(model.script(one.text, one.voice, many), step) for one in utterances]

    def value(self, setting: Setting, grid: PlacedGrid, step: Callable[[], None]) -> Value:
        found = (self._model.last_state(self._scripts.of(one, setting, grid), step) for one in self._utterances)
        return (fmean(float(np.abs(one - end).mean()) for one, end in zip(found, self._ends, strict=True)),)


class _Stepping(Passing):
    def __init__(self, observer: Observer, step: Callable[[], None]) -> None:
        super().__init__(observer, "caution")
        self._step = step

    def step(self, report: StepReport) -> None:
        self._step()


class Fidelity:
    """Metric of the sound relative to that of many steps from the same noise; the log-mel distance decides ties."""

    def __init__(
        self,
        model: FlowModel,
        utterances: Sequence[Utterance],
        setting: Setting,
        name: str,
        observer: Observer,
        step: Callable[[], None],
    ) -> None:
        """Synthesise with many steps. ``step`` is called after each and may raise to stop."""
        self._utterances, self._metric = utterances, metric(name)
        self._scripts = _Scripts(model, Passing(observer, "caution"))
        stepping, many = _Stepping(observer, step), many_steps(model, setting)
        self._wanted = [
            _sounded(model.speak(model.script(one.text, one.voice, many, stepping), stepping)) for one in utterances
        ]
        self.unit = f"{self._metric.label} to what {MANY} steps say"

    def value(self, setting: Setting, grid: PlacedGrid, step: Callable[[], None]) -> Value:
        pairs = zip(self._utterances, self._wanted, strict=True)
        figures, distances = zip(*(self._figures(one, wanted, setting, grid) for one, wanted in pairs), strict=True)
        # Unmeasurable values, such as the pitch of noise, are the worst.
        return math.inf if math.isnan(fmean(figures)) else fmean(figures), fmean(distances)

    def _figures(self, one: Utterance, wanted: Sounded, setting: Setting, grid: PlacedGrid) -> tuple[float, float]:
        spoken = self._scripts.spoken(one, setting, grid)
        distance, metrics = with_difference(Metrics(), wanted, _sounded(spoken))
        assert self._metric.of is not None
        found = self._metric.of(spoken.measurements, metrics, distance)
        return math.nan if found is None else found, distance


def _sounded(spoken: Synthesis) -> Sounded:
    return spoken.trace.mel, (spoken.samples, spoken.sample_rate)


class Judged:
    """Judge's metric of the speech; ties are decided by the distance, if any."""

    def __init__(self, model: FlowModel, utterances: Sequence[Utterance], name: str, observer: Observer) -> None:
        """Load the judge. Raises :class:`PlainError` if it is not installed."""
        self._model, self._utterances, self._metric = model, utterances, metric(name)
        texts = [one.text for one in utterances]
        self._judge = judge_named(self._metric.judge).ready(texts, model.info.device_type or "cpu")
        self._scripts = _Scripts(model, Passing(observer, "caution"))
        self.unit = self._metric.label
        self.distance: Distance | None = None

    def value(self, setting: Setting, grid: PlacedGrid, step: Callable[[], None]) -> Value:
        of_one = self._heard if self._metric.across_seeds is None else self._spread
        values = [of_one(one, setting, grid) for one in self._utterances]
        figure = estimate(self._metric.name, values).value
        # Unmeasurable values are the worst.
        signed = math.inf if math.isnan(figure) else -figure if self._metric.better == HIGHER else figure
        return (signed, *(self.distance.value(setting, grid, step) if self.distance else ()))

    def _heard(self, one: Utterance, setting: Setting, grid: PlacedGrid) -> complex:
        assert self._metric.verdict is not None
        found = self._metric.verdict(self._said(one, setting, grid).figures)
        return math.nan if found is None else found

    def _spread(self, one: Utterance, setting: Setting, grid: PlacedGrid) -> complex:
        """Metric of takes with several seeds."""
        seeded = [replace(setting, seed=setting.seed + number) for number in range(SEEDS)]
        curves = [np.array(self._said(one, each, grid).curve) for each in seeded]
        assert self._metric.across_seeds is not None
        found = self._metric.across_seeds(curves)
        return math.nan if found is None else found

    def _said(self, one: Utterance, setting: Setting, grid: PlacedGrid) -> Verdict:
        spoken = self._scripts.spoken(one, setting, grid)
        return self._judge.hear(one.text, one.voice, spoken.samples, self._model.info.sample_rate)


def many_steps(model: FlowModel, setting: Setting) -> Any:
    """Plan of the reference run of ``setting``, without the techniques that approximate it."""
    return with_flow_options(resolve(model.info, without_slots(setting, "grid", "solver", "skipping")), steps=MANY)


def adds_noise(setting: Setting, model: FlowModel) -> bool:
    """Whether the sampler adds noise at every step, so that end points of many steps depend on the grid."""
    return bool(checked(model.info.knobs, setting.options, model.info.title).get("overshoot"))


def objective_of(
    model: FlowModel,
    utterances: Sequence[Utterance],
    setting: Setting,
    name: str,
    observer: Observer,
    step: Callable[[], None],
) -> Distance | Fidelity | Judged:
    """The objective called ``name``, ready for use; ``step`` is called after every step of the reference run. Raises
    :class:`SettingError` if there is no common end point, and :class:`PlainError` for a judge that is not installed."""
    noisy = adds_noise(setting, model)
    if noisy and name in (DISTANCE, *FIDELITY):
        raise SettingError(
            "With an overshoot every step adds noise, and the distance to where many steps end says little; set "
            "Overshoot to 0, or search by what a judge says."
        )
    if name in FIDELITY:
        return Fidelity(model, utterances, setting, name, observer, step)
    if name == DISTANCE:
        return Distance(model, utterances, setting, step, observer)
    # The judge first: if it is not installed, nothing runs in vain.
    judged = Judged(model, utterances, name, observer)
    judged.distance = None if noisy else Distance(model, utterances, setting, step, observer)
    return judged


class Journal:
    """Values by grid, also in a file; unreadable lines are skipped."""

    def __init__(self, name: str, resume: bool = True) -> None:
        """``name`` identifies the search; without ``resume``, stored values are deleted."""
        self._path = data_folder() / "grid-searches" / f"{name}.jsonl"
        self.known: dict[Times, Value] = {}
        if not resume:
            self.close()
            return
        with suppress(OSError, UnicodeDecodeError):
            for line in read_text(self._path).splitlines():
                with suppress(ValueError, TypeError):  # The last line of an interrupted search may be incomplete.
                    times, value = parsed_json(line)
                    self.known[tuple(map(float, times))] = tuple(map(float, value))

    def add(self, times: Times, value: Value) -> None:
        """Store the value of a grid. If the file cannot be written, the search only loses the ability to resume."""
        self.known[times] = value
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            append_line(self._path, json.dumps([times, value]))
        except OSError:
            return

    def close(self) -> None:
        self._path.unlink(missing_ok=True)


SPEAKING = 1.5
"""Rough cost of decoding and judging an utterance, as a multiple of that of sampling."""


def search_grid(
    model: SpeechModel,
    utterances: Sequence[Utterance],
    setting: Setting,
    observer: Observer,
    on_trial: Callable[[Trial], None] = lambda trial: None,
    resume: bool = True,
) -> Searched:
    """Search times for ``setting``, with its knobs of the technique, on the first passage of every utterance.

    Starts from the best of EPSS if it has a table, the sway grid and the even grid, and never ends worse. The
    observer's units are evaluations; it may stop the search after every step. With ``resume``, continues an interrupted
    search with the same arguments. Raises :class:`SettingError` if ``setting`` rules the technique out,
    :class:`PlainError` for judges that are not installed, and :class:`paretone.errors.Cancelled`.
    """
    began = time.perf_counter()
    if not utterances:
        raise SettingError("A grid is searched on at least one sentence; give one.")
    flow, knobs = flow_model(model, "Searching a grid"), knobs_under(setting, NAME)
    steps, method, name = int(knobs["evaluations"]), str(knobs["search"]), str(knobs["objective"])
    others = setting.without(NAME)
    compatibility = placed_for(compatibility_of(flow.info, others, of_flow=True), steps)
    grid = PlacedGrid(compatibility, tuple(np.linspace(0, 1, steps + 1).tolist()), solver_of(others))
    titled = start_grids(steps)
    said = [(one.text, one.voice.id) for one in utterances]
    of = json.dumps([compatibility.to_json(), others.to_json(), dict(knobs), said, MANY], sort_keys=True)
    journal = Journal(hashlib.sha256(of.encode()).hexdigest()[:16], resume)
    noisy = adds_noise(others, flow)
    takes = 0 if name == DISTANCE else SEEDS if name not in FIDELITY and metric(name).across_seeds else 1
    measures = name not in FIDELITY and not noisy
    # In evaluations: those of the reference run, and of a trial, which measures the end point and speaks takes.
    first = 0 if noisy else len(utterances) * MANY
    each = len(utterances) * steps * (measures + takes * (1 + SPEAKING))
    work = Work(observer, first + each * (most_trials(method, steps, int(knobs["passes"])) + len(titled)))
    observer.status(f"Speaking with {MANY} steps" if first else "Loading the judge")
    objective = objective_of(flow, utterances, others, name, observer, work.done)
    trials: list[Trial] = []

    def value(times: Times) -> Value:
        candidate = replace(grid, times=times)
        if times not in journal.known:
            used = setting.with_technique(UsedTechnique(NAME, knobs, candidate.fingerprint))
            journal.add(times, objective.value(used, candidate, work.done))
        return journal.known[times]

    def tried(trial: Trial) -> None:
        trials.append(trial)
        work.reached(first + each * len(trials))
        passes = f"Pass {trial.pass_number}, time {trial.moved} of {steps - 1}" if trial.pass_number else "Known grids"
        if len(trials) == 1 or (trials[-2].pass_number, trials[-2].moved) != (trial.pass_number, trial.moved):
            observer.status(passes)
        on_trial(trial)

    best = search(method, value, [times for _, times in titled], int(knobs["passes"]), tried)
    work.finish()
    journal.close()
    by_times = {one.times: one for one in trials}
    how = "O3S" if method == OPTIMAL else "a coordinate search"
    words = f"found by {how} on {counted(len(utterances), 'sentence', 'sentences')}, by {objective.unit}"
    return Searched(
        replace(grid, times=best.times, origin=words),
        tuple(Start(title, by_times[times]) for title, times in titled),
        best,
        len(trials),
        objective.unit,
        time.perf_counter() - began,
    )


def start_grids(steps: int) -> list[tuple[str, Times]]:
    """Usual grids with ``steps`` steps, with titles: EPSS if it has a table, sway −1, and even."""
    found = []
    if effective_spacing(steps, "epss") == "epss":
        found.append((f"EPSS {steps}", sampling_grid(steps, "epss", -1.0)))
    found += [("sway −1", sampling_grid(steps, "uniform", -1.0)), ("even", sampling_grid(steps, "uniform", 0.0))]
    return [(title, rounded(times.tolist())) for title, times in found]


def carry_out_search(task: JobTask) -> Searched:
    request, observer = task.request, task.observer
    tell = partial(observer.report, "trial")
    found = search_grid(task.loaded, request.utterances, request.setting, observer, tell, request.resume)
    observer.check()
    return found
