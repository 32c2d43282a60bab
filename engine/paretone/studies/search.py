"""Search for the best setting: Optuna proposes settings, the study's queue evaluates them. Extra ``[search]``.

The study's file holds all of Optuna's knowledge: after a crash its memory is rebuilt from the finished trials. Its
samplers treat constraints as soft; the answer is chosen here, among the trials that keep all of them with their whole
95 % intervals (:mod:`paretone.measure.estimates`) or, without any, among the undecided ones.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import count
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from paretone.errors import SettingError, StudyError
from paretone.extras import NO_SEARCH, needing
from paretone.measure.estimates import FAILS, PASSES, UNDECIDED, Margins, advice
from paretone.measure.metrics import metric
from paretone.studies.results import costs_of, figures_of, front, margins_of
from paretone.studies.space import OFF, Range, Search, VariedKnob
from paretone.studies.store import COMPLETE, FAILED, RULED_OUT, RUNNING, Store, StoredTrial
from paretone.studies.study import SEARCH, Candidate, Study, assembled
from paretone.techniques import conflict

if TYPE_CHECKING:
    import optuna

RULED_OUT_AT_MOST = 3
"""The search ends when techniques have ruled out this many settings per trial."""


@dataclass(frozen=True)
class Answer:
    trials: tuple[StoredTrial, ...]
    """The best one; for several objectives the whole front."""
    kept: int
    """Number of trials that meet all constraints with their whole intervals."""
    undecided: int
    """Number of trials that may meet them."""
    more: int | None
    """Further sentences needed to decide the answer's trials, if undecided."""
    complete: int
    """Number of evaluated trials."""
    failed: int
    ruled_out: int
    """Number of proposed settings ruled out by techniques."""

    @property
    def words(self) -> str:
        others = [(self.failed, "could not be run"), (self.ruled_out, "were ruled out by the techniques themselves")]
        more = "".join(f"; {number} more {what}" for number, what in others if number)
        doubtful = f" and {self.undecided} may meet them" if self.undecided else ""
        said = f"{self.complete} trials were evaluated, of which {self.kept} meet the constraints{doubtful}{more}."
        return f"{said} {self.doubt}".rstrip()

    @property
    def sure(self) -> bool:
        """Whether its trials meet the constraints with their whole intervals."""
        return self.kept > 0

    @property
    def doubt(self) -> str:
        """Sentence that its trials are undecided, with the sentences needed, or ``""``."""
        if self.sure or not self.undecided:
            return ""
        return f"None is certain to meet them; the best of those that may are shown: {advice(self.more)}."


class Searcher:
    """One search within a study. Raises :class:`StudyError` if Optuna is not installed."""

    def __init__(self, study: Study, store: Store) -> None:
        with needing(StudyError, NO_SEARCH):
            import optuna
        assert study.search is not None
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self._optuna = optuna
        self._study, self._store, self._search = study, store, study.search
        self._running: dict[str, tuple[StoredTrial, optuna.trial.Trial]] = {}
        """Trials waiting for their takes, by setting key."""
        self._memory = self._begun()
        earlier = store.trials()
        self._numbers = count(max((one.number for one in earlier), default=-1) + 1)
        for one in earlier:
            if one.state in (COMPLETE, RULED_OUT):
                self._remember(one)
        self._waiting = [one for one in earlier if one.state == RUNNING]
        self._spent = sum(one.state in (COMPLETE, FAILED) for one in earlier)
        self._ruled_out = sum(one.state == RULED_OUT for one in earlier)

    def ask(self) -> Candidate | None:
        """Next setting to try, or ``None`` if no trials are left."""
        if self._waiting:
            again = self._waiting.pop(0)
            setting = next(one for one in self._store.settings() if one.key == again.setting)
            # A trial interrupted by a crash is repeated with the same parameters.
            self._memory.enqueue_trial(dict(again.params))
            trial = self._memory.ask()
            self._axes_for(trial)
            for axis in self._search.axes:
                if axis.name in again.params:
                    self._suggest(trial, axis)
            self._running.setdefault(setting.key, (again, trial))
            return setting.candidate
        while not self.exhausted:
            trial = self._memory.ask()
            params = {axis.name: self._suggest(trial, axis) for axis in self._axes_for(trial)}
            try:
                candidate = self._candidate(params)
            except SettingError as error:
                self._rule_out(trial, params, "", str(error))
                continue
            if candidate.key in self._running:
                # Proposed twice at once: another worker's trial answers this one, too.
                self._rule_out(trial, params, candidate.key, "the same setting is being tried already")
                continue
            stored = StoredTrial(next(self._numbers), params, candidate.key, RUNNING)
            self._store.add_setting(candidate)
            self._store.put_trial(stored)
            self._running[candidate.key] = stored, trial
            return candidate
        return None

    def report(self, complete: Callable[[str], bool]) -> None:
        """Report finished trials to Optuna; ``complete``: whether a setting's takes are made."""
        ready = [key for key in self._running if complete(key)]
        for key in ready:
            self._tell(*self._running.pop(key))
        self._spent += len(ready)

    @property
    def open(self) -> int:
        """Trials waiting for their takes."""
        return len(self._running)

    @property
    def left(self) -> int:
        if self.exhausted:
            return 0
        return max(len(self._waiting), self._search.trials - self._spent - len(self._running))

    @property
    def exhausted(self) -> bool:
        enough = self._spent + len(self._running) >= self._search.trials
        return not self._waiting and (enough or self._ruled_out >= RULED_OUT_AT_MOST * self._search.trials)

    # --- Optuna -------------------------------------------------------------------------------------------------------
    def _begun(self) -> optuna.Study:
        search, optuna = self._search, self._optuna
        several = len(search.objectives) > 1
        kind = search.sampler if search.sampler != "auto" else ("nsga2" if several and search.trials > 200 else "tpe")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Experimental arguments, which are pinned by version.
            if kind == "nsga2":
                sampler = optuna.samplers.NSGAIISampler(seed=search.seed)
            elif kind == "random":
                sampler = optuna.samplers.RandomSampler(seed=search.seed)
            else:
                first = min(10, max(3, search.trials // 4))
                sampler = optuna.samplers.TPESampler(
                    seed=search.seed, multivariate=True, group=True, n_startup_trials=first
                )
            directions = ["maximize" if metric(name).better == "higher" else "minimize" for name in search.objectives]
            return optuna.create_study(directions=directions, sampler=sampler)

    def _axes_for(self, trial: optuna.trial.Trial) -> list[VariedKnob | Range]:
        """Relevant axes: without those of techniques that are off. Axes with an "off" value come first."""
        switches = [axis for axis in self._search.axes if isinstance(axis, VariedKnob) and OFF in axis.values]
        others = [axis for axis in self._search.axes if axis not in switches]
        off = {axis.technique for axis in switches if self._suggest(trial, axis) == OFF and axis.technique}
        return [*switches, *(axis for axis in others if not axis.technique or axis.technique not in off)]

    @staticmethod
    def _suggest(trial: optuna.trial.Trial, axis: VariedKnob | Range) -> bool | int | float | str:
        if isinstance(axis, VariedKnob):
            # One of the given values; Optuna's own type also allows None.
            return cast("bool | int | float | str", trial.suggest_categorical(axis.name, list(axis.values)))
        if axis.whole:
            return trial.suggest_int(axis.name, int(axis.low), int(axis.high), step=int(axis.step or 1), log=axis.log)
        return trial.suggest_float(axis.name, axis.low, axis.high, step=axis.step, log=axis.log)

    def _remember(self, stored: StoredTrial) -> None:
        """Restore a finished trial in Optuna's memory."""
        axes = {axis.name: axis for axis in self._search.axes}
        if not set(stored.params) <= set(axes):
            return  # The study's space has changed.
        distributions = {name: self._distribution(axes[name]) for name in stored.params}
        result: dict[str, Any] = {"state": self._kept_away}
        if stored.state == COMPLETE:
            values, constraints = stored.outcome["values"], stored.outcome["constraints"]
            result = {"values": list(values), "constraints": dict(constraints) or None}
        try:
            trial = self._optuna.trial.create_trial(params=dict(stored.params), distributions=distributions, **result)
        except ValueError:
            return
        self._memory.add_trial(trial)

    def _distribution(self, axis: VariedKnob | Range) -> optuna.distributions.BaseDistribution:
        kinds = self._optuna.distributions
        if isinstance(axis, VariedKnob):
            return kinds.CategoricalDistribution(list(axis.values))
        if axis.whole:
            return kinds.IntDistribution(int(axis.low), int(axis.high), axis.log, int(axis.step or 1))
        return kinds.FloatDistribution(axis.low, axis.high, axis.log, axis.step)

    def _tell(self, stored: StoredTrial, trial: optuna.trial.Trial) -> None:
        figures = figures_of(self._store, [stored.setting])
        mine = figures.get(stored.setting, {})
        settings = {one.key: one for one in self._store.settings()}
        theirs = figures.get(settings[stored.setting].baseline, {})
        try:
            values = [mine[name].value for name in self._search.objectives]
            kept = {
                one.words: one.excess(mine[one.metric].value, theirs[one.metric].value if one.relative else 0.0)
                for one in self._search.constraints
            }
        except KeyError as error:
            problem = settings[stored.setting].problem or f"{metric(error.args[0]).title} could not be measured"
            self._memory.tell(trial, state=self._optuna.trial.TrialState.FAIL)
            self._store.put_trial(replace(stored, state=FAILED, outcome={"problem": problem}))
            return
        margins = margins_of(self._store, stored.setting, self._search.constraints)
        for name, excess in kept.items():
            trial.set_constraint(name, excess)
        self._memory.tell(trial, values)
        found = Margins({one.words: margin for one, margin in zip(self._search.constraints, margins, strict=True)})
        outcome = {"values": values, "constraints": kept, "verdict": found.verdict, "more": found.more}
        self._store.put_trial(replace(stored, state=COMPLETE, outcome=outcome))

    def _rule_out(self, trial: optuna.trial.Trial, params: Mapping[str, object], key: str, problem: str) -> None:
        """Record a setting that is not run; no trial counts, but Optuna learns to avoid it."""
        self._memory.tell(trial, state=self._kept_away)
        self._store.put_trial(StoredTrial(next(self._numbers), params, key, RULED_OUT, {"problem": problem}))
        self._ruled_out += 1

    @property
    def _kept_away(self) -> optuna.trial.TrialState:
        """Optuna's state of a ruled-out setting: with one objective the worst value, with several a failure, as its
        samplers then have no worst value."""
        states = self._optuna.trial.TrialState
        return states.PRUNED if len(self._search.objectives) == 1 else states.FAIL

    # --- Settings -----------------------------------------------------------------------------------------------------
    def _candidate(self, params: Mapping[str, object]) -> Candidate:
        axes = {axis.name: VariedKnob(axis.technique, axis.knob, ()) for axis in self._search.axes}
        values = {axes[name]: value for name, value in params.items()}
        setting = assembled(self._study.model, self._study.options, values)
        if reason := conflict(setting):
            raise SettingError(reason)
        return Candidate(setting, SEARCH)


def answer(search: Search, trials: tuple[StoredTrial, ...]) -> Answer:
    """Best of the trials that keep all constraints, otherwise of those that may; empty if there are none."""
    complete = [one for one in trials if one.state == COMPLETE]
    kept, undecided = ([one for one in complete if _verdict(one) == verdict] for verdict in (PASSES, UNDECIDED))
    failed, ruled_out = (sum(one.state == state for one in trials) for state in (FAILED, RULED_OUT))
    best: dict[str, StoredTrial] = {}
    if among := kept or undecided:
        values = np.array([one.outcome["values"] for one in among])
        costs = costs_of(values, tuple(metric(name).better for name in search.objectives))
        best = {one.setting: one for one, on in zip(among, front(costs), strict=True) if on}
    wanted = [one.outcome.get("more") for one in best.values()] if not kept else []
    more = max((one for one in wanted if one is not None), default=None) if None not in wanted else None
    return Answer(tuple(best.values()), len(kept), len(undecided), more, len(complete), failed, ruled_out)


def _verdict(trial: StoredTrial) -> str:
    """Whether a complete trial keeps all constraints. Earlier versions stored no intervals."""
    within = all(excess <= 0 for excess in trial.outcome["constraints"].values())
    return str(trial.outcome.get("verdict", PASSES if within else FAILS))
