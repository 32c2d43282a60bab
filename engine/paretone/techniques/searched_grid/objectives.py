"""What a grid is searched by: the distance to where many steps end, a figure of the sound against what many steps say,
or what a judge says of the speech."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from statistics import fmean

import numpy as np

from paretone.errors import SettingError
from paretone.measure.evaluation.judges import Judge, Verdict, judge_named
from paretone.measure.fidelity import Sounded, with_difference
from paretone.measure.metrics import HIGHER, Metric, estimate, metric
from paretone.models.base import FlowModel, Synthesis, Utterance
from paretone.observer import Observer, Passing, StepReport
from paretone.sampling.grid_search import Value
from paretone.setting.knobs import checked
from paretone.setting.setting import Setting
from paretone.setting.take import Metrics
from paretone.speaking import scripted, synthesise
from paretone.techniques.registry import technique
from paretone.techniques.searched_grid import DISTANCE, FIDELITY
from paretone.techniques.searched_grid.grid import PlacedGrid

MANY = 64
"""Steps of the run whose end point distances are measured to."""
SEEDS = 3
"""Takes of each sentence, for figures of their spread over seeds."""
PUT_ASIDE = ("grid", "solver", "skipping")
"""Slots of techniques that the run with many steps goes without: they approximate it."""


class Distance:
    """Mean absolute difference of the last states of new speech, from the same noise, mean over the utterances."""

    unit = f"mean absolute difference of the last state to that of {MANY} steps"

    def __init__(
        self, model: FlowModel, utterances: Sequence[Utterance], setting: Setting, step: Callable[[], None]
    ) -> None:
        """Runs the model with many steps. ``step`` is called after every step of it, and may raise to stop."""
        self._model, self._utterances = model, utterances
        self._ends = [
            model.last_state(scripted(model, one.text, one.voice, many_steps(setting)), step) for one in utterances
        ]

    def value(self, setting: Setting, grid: PlacedGrid, step: Callable[[], None]) -> Value:
        found = (
            self._model.last_state(scripted(self._model, one.text, one.voice, setting, (grid,)), step)
            for one in self._utterances
        )
        return (fmean(float(np.abs(one - end).mean()) for one, end in zip(found, self._ends, strict=True)),)


class _Stepping(Passing):
    """Tells of every step."""

    def __init__(self, observer: Observer, step: Callable[[], None]) -> None:
        super().__init__(observer, "caution")
        self._step = step

    def step(self, report: StepReport) -> None:
        self._step()


class Fidelity:
    """A figure of the sound against what many steps say from the same noise; equal figures are decided by the log-mel
    distance."""

    def __init__(
        self,
        model: FlowModel,
        utterances: Sequence[Utterance],
        setting: Setting,
        name: str,
        observer: Observer,
        step: Callable[[], None],
    ) -> None:
        """Speaks with many steps. ``step`` is called after every step of it, and may raise to stop."""
        self._model, self._utterances, self._metric = model, utterances, metric(name)
        self._observer = Passing(observer, "caution")
        stepping = _Stepping(observer, step)
        self._wanted = [
            _sounded(synthesise(model, one.text, one.voice, many_steps(setting), (), stepping)) for one in utterances
        ]
        self.unit = f"{self._metric.label} to what {MANY} steps say"

    def value(self, setting: Setting, grid: PlacedGrid, step: Callable[[], None]) -> Value:
        pairs = zip(self._utterances, self._wanted, strict=True)
        figures, distances = zip(*(self._figures(one, wanted, setting, grid) for one, wanted in pairs), strict=True)
        # What cannot be measured, such as the pitch of noise, is the worst.
        return math.inf if math.isnan(fmean(figures)) else fmean(figures), fmean(distances)

    def _figures(self, one: Utterance, wanted: Sounded, setting: Setting, grid: PlacedGrid) -> tuple[float, float]:
        spoken = synthesise(self._model, one.text, one.voice, setting, (grid,), self._observer)
        distance, metrics = with_difference(Metrics(), wanted, _sounded(spoken))
        assert self._metric.of is not None
        found = self._metric.of(spoken.measurements, metrics, distance)
        return math.nan if found is None else found, distance


def _sounded(spoken: Synthesis) -> Sounded:
    return spoken.trace.mel, (spoken.samples, spoken.sample_rate)


class Judged:
    """A judge's figure of the speech; equal figures are decided by the distance, if there is one."""

    def __init__(
        self,
        model: FlowModel,
        utterances: Sequence[Utterance],
        name: str,
        observer: Observer,
    ) -> None:
        """Loads the judge. Raises :class:`PlainError` if it is not installed."""
        self._model, self._utterances = model, utterances
        self._distance: Distance | None = None
        self._metric: Metric = metric(name)
        self._judge: Judge = judge_named(self._metric.judge).ready(
            [one.text for one in utterances], model.info.device_type or "cpu"
        )
        self._observer = Passing(observer, "caution")
        self.unit = self._metric.label

    def or_by(self, distance: Distance | None) -> Judged:
        """The same, with equal figures decided by ``distance``."""
        self._distance = distance
        return self

    def value(self, setting: Setting, grid: PlacedGrid, step: Callable[[], None]) -> Value:
        of_one = self._heard if self._metric.across_seeds is None else self._spread
        values = [of_one(one, setting, grid) for one in self._utterances]
        figure = estimate(self._metric.name, values).value
        # What cannot be judged is the worst.
        signed = math.inf if math.isnan(figure) else -figure if self._metric.better == HIGHER else figure
        return (signed, *(self._distance.value(setting, grid, step) if self._distance else ()))

    def _heard(self, one: Utterance, setting: Setting, grid: PlacedGrid) -> complex:
        assert self._metric.verdict is not None
        found = self._metric.verdict(self._said(one, setting, grid).figures)
        return math.nan if found is None else found

    def _spread(self, one: Utterance, setting: Setting, grid: PlacedGrid) -> complex:
        """A figure of takes with several seeds."""
        seeded = [replace(setting, seed=setting.seed + number) for number in range(SEEDS)]
        curves = [np.array(self._said(one, each, grid).curve) for each in seeded]
        assert self._metric.across_seeds is not None
        found = self._metric.across_seeds(curves)
        return math.nan if found is None else found

    def _said(self, one: Utterance, setting: Setting, grid: PlacedGrid) -> Verdict:
        spoken = synthesise(self._model, one.text, one.voice, setting, (grid,), self._observer)
        return self._judge.hear(one.text, one.voice, spoken.samples, self._model.info.sample_rate)


def many_steps(setting: Setting) -> Setting:
    """``setting`` with many steps, and without what approximates them."""
    for one in setting.techniques:
        if technique(one.technique).slot.partition(":")[0] in PUT_ASIDE:
            setting = setting.without(one.technique)
    return replace(setting, options=setting.options.replace(steps=MANY))


def adds_noise(setting: Setting, model: FlowModel) -> bool:
    """Whether the sampler adds noise on its way, so that many steps end elsewhere with every grid."""
    return bool(checked(model.info.knobs, setting.options, model.info.title).get("overshoot"))


def objective_of(
    model: FlowModel,
    utterances: Sequence[Utterance],
    setting: Setting,
    name: str,
    observer: Observer,
    step: Callable[[], None],
) -> Distance | Fidelity | Judged:
    """The objective called ``name``, ready to be asked; ``step`` is called after every step of the run with many.
    Raises :class:`SettingError` where there is no end point, and :class:`PlainError` for a judge that is not
    installed."""
    noisy = adds_noise(setting, model)
    if noisy and name in (DISTANCE, *FIDELITY):
        raise SettingError(
            "With an overshoot every step adds noise, and the distance to where many steps end says little; set "
            "Overshoot to 0, or search by what a judge says."
        )
    if name in FIDELITY:
        return Fidelity(model, utterances, setting, name, observer, step)
    # The judge first: if it is not installed, nothing was run in vain.
    judged = None if name == DISTANCE else Judged(model, utterances, name, observer)
    distance = None if noisy else Distance(model, utterances, setting, step)
    if judged is None:
        assert distance is not None
        return distance
    return judged.or_by(distance)
