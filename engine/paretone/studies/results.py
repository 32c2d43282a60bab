"""Results of a study so far, for views and reports: every metric per setting, with its interval. Torch-free.

A setting's figure is computed from its finished takes. Takes of one sentence (its voices, seeds and rounds) are first
combined by mean or median; the figure is the mean or median over the sentences, and its interval a bootstrap over them.
With a single sentence the interval is over its voices and seeds.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from paretone.database import audio_path
from paretone.measure.estimates import UNKNOWN, Estimate, Margin, around, estimates, tail_interval, tails
from paretone.measure.evaluation.judges import Verdict
from paretone.measure.metrics import JUDGED, METRICS, Metric, error_rate, estimate, metric
from paretone.serving.records import marks
from paretone.setting.knobs import Values
from paretone.setting.plan import says_idle
from paretone.setting.setting import Setting
from paretone.setting.take import Measurements
from paretone.studies.paired import WORST, PairedTest, paired, worst
from paretone.studies.space import Constraint
from paretone.studies.store import Store, StoredSetting, StoredTake, StoredTrial
from paretone.studies.study import BASELINE, SERVER, Cell, Study


def front(costs: np.ndarray) -> np.ndarray:
    """Membership of points (n, objectives) in the Pareto front, as booleans (n,); all objectives are costs.

    A point is dominated by another with no higher cost anywhere and a lower one somewhere; equal points do not dominate
    each other. A point with a value that is not finite is on no front and dominates nothing.
    """
    costs = np.asarray(costs, np.float64)
    if costs.ndim != 2:
        raise ValueError(f"Points must be (n, objectives), not {costs.shape}.")
    usable = np.isfinite(costs).all(1)
    if costs.shape[1] == 2:
        return _front_of_two(costs, usable)
    best = usable.copy()
    # Sorted by the first objective, then the others: dominating points come first, and by transitivity only points on
    # the front need comparing.
    found = np.empty((0, costs.shape[1]))
    for index in np.lexsort(costs.T[::-1]):
        if not usable[index]:
            continue
        point = costs[index]
        dominated = (found <= point).all(1) & (found < point).any(1)
        best[index] = not dominated.any()
        if best[index]:
            found = np.vstack([found, point])
    return best


def _front_of_two(costs: np.ndarray, usable: np.ndarray) -> np.ndarray:
    """Likewise for two objectives without a loop: views follow thousands of points interactively."""
    best = np.zeros(len(costs), bool)
    if not usable.any():
        return best
    first, group = np.unique(costs[usable, 0], return_inverse=True)
    second = costs[usable, 1]
    least = np.full(len(first), np.inf)
    np.minimum.at(least, group, second)
    # Minimum second cost among points with a lower first cost.
    before = np.r_[np.inf, np.minimum.accumulate(least)[:-1]]
    best[usable] = (second == least[group]) & (second < before[group])
    return best


def costs_of(values: np.ndarray, better: tuple[str, ...]) -> np.ndarray:
    """``values`` (n, objectives) as costs: negated where ``better`` is ``higher``."""
    return np.asarray(values, np.float64) * np.array([-1.0 if one == "higher" else 1.0 for one in better])


_OF_A_BASELINE = {"speed_up": 1.0}
"""Values of relative metrics of the baseline itself, by definition; 0 for all others."""


@dataclass(frozen=True)
class SettingResult:
    key: str
    name: str
    origin: str
    """``baseline``, ``list``, ``grid``, ``search`` or ``server``."""
    setting: Setting
    baseline: str
    """Key of its baseline; its own for a baseline."""
    figures: Mapping[str, Estimate]
    """Measured figures by metric."""
    takes: tuple[str, ...] = ()
    """Ids of its playable takes."""
    finished: int = 0
    """Finished takes in all rounds, including those whose audio was lost."""
    problem: str = ""
    """Reason why it cannot be run, or ``""``."""
    busy: int = 0
    """Takes with doubtful times because of other processes' load."""
    idle: tuple[str, ...] = ()
    """Notes of its takes on techniques that skipped nothing, without duplicates."""
    sentences: Mapping[str, Mapping[str, complex]] = field(default_factory=dict, repr=False)
    """Judged figures by metric and sentence, for paired tests."""
    mark: str = ""
    """Of a server's load: ``knee`` or ``saturated``."""

    def value(self, name: str) -> float | None:
        found = self.figures.get(name)
        return None if found is None else found.value


@dataclass(frozen=True)
class PlayableTake:
    take: str
    text: str
    voice: str
    seed: int
    folder: Path
    understood: str = ""
    """Words recognised by the first judge of words."""
    error_rate: float | None = None
    """That judge's errors over the words spoken."""

    @property
    def path(self) -> Path:
        return audio_path(self.folder, self.take)


@dataclass(frozen=True)
class Failure:
    cell: Cell
    sentence: str
    text: str = ""
    """The text; empty if no take of the utterance exists."""
    voice: str = ""


@dataclass(frozen=True)
class Results:
    folder: Path
    title: str
    model: str
    checkpoint: str
    created: str
    file: str
    definition: Mapping[str, Any] = field(repr=False)
    settings: tuple[SettingResult, ...] = ()
    references: Mapping[str, Estimate] = field(default_factory=dict)
    """Judges' scores of the reference speech by metric: their floors."""
    no_reference: str = ""
    """Reason why there is no reference speech, or ``""``."""
    heard: Mapping[str, tuple[PlayableTake, ...]] = field(default_factory=dict, repr=False)
    """Playable takes by setting key."""
    machines: tuple[str, ...] = ()
    clocks: tuple[str, ...] = ()
    trials: tuple[StoredTrial, ...] = ()
    failed: tuple[Failure, ...] = ()
    busy_seconds: float = 0.0
    """Wall seconds of the workers' takes and calibrations, warm-up and judging included."""
    damage: str = ""
    """Damage of the study's file, or ``""``."""
    lost: tuple[str, ...] = ()
    """Ids of takes with lost or damaged audio: their figures are known, but they cannot be played."""

    @property
    def failures(self) -> tuple[str, ...]:
        """Their sentences, each once, with the number of takes."""
        times = Counter(one.sentence for one in self.failed)
        return tuple(f"{said} ({count} takes)" if count > 1 else said for said, count in times.items())

    def setting(self, key: str) -> SettingResult | None:
        return next((one for one in self.settings if one.key == key), None)

    def paired(self, key: str, other: str = "") -> tuple[PairedTest, ...]:
        """Tests of all judged figures of the setting ``key`` minus those of ``other``, its baseline by default."""
        one = self.setting(key)
        two = self.setting(other or one.baseline) if one is not None else None
        if one is None or two is None or one.key == two.key:
            return ()
        tests = (
            paired(name, values, two.sentences[name]) for name, values in one.sentences.items() if name in two.sentences
        )
        return tuple(test for test in tests if test is not None)

    def worst(self, key: str, count: int = WORST) -> tuple[PlayableTake, ...]:
        """Playable takes of a setting with the most errors, the worst first; none without errors."""
        return tuple(worst(((one, one.error_rate) for one in self.heard.get(key, ())), count))

    @property
    def metrics(self) -> tuple[Metric, ...]:
        return tuple(one for one in METRICS if any(one.name in found.figures for found in self.settings))

    def front(self, names: Sequence[str]) -> frozenset[str]:
        """Keys of the settings on the Pareto front of the metrics ``names``."""
        values = np.array([[one.value(name) for name in names] for one in self.settings], float)
        if not values.size:  # No metric of them was measured.
            return frozenset()
        best = front(costs_of(values, tuple(metric(name).better for name in names)))
        return frozenset(one.key for one, on in zip(self.settings, best, strict=True) if on)


def read(folder: str | Path) -> Results:
    """Results of the study in ``folder``. Raises :class:`paretone.errors.StudyError`."""
    with Store(folder, read_only=True) as store:
        return results(store)


def results(store: Store) -> Results:
    about, settings, takes = store.about(), store.settings(), store.takes()
    by_setting: dict[str, list[StoredTake]] = defaultdict(list)
    for take in takes:
        by_setting[take.cell.setting].append(take)
    lost = {take.take for take in takes if not store.is_heard(take)}
    playable = {
        key: [take for take in mine if take.cell.round == 0 and take.take not in lost]
        for key, mine in by_setting.items()
    }
    figures, sentences = _figures(settings, by_setting), _sentences(settings, by_setting)
    marked = _marks(settings, by_setting)
    references, no_reference = _references(store)
    found = tuple(
        SettingResult(
            one.key,
            one.name,
            one.origin,
            one.setting,
            one.baseline,
            figures.get(one.key, {}),
            tuple(take.take for take in playable.get(one.key, ())),
            sum(take.cell.round != 0 or take.take not in lost for take in by_setting[one.key]),
            one.problem,
            sum(take.measurements.busy for take in by_setting[one.key]),
            tuple(dict.fromkeys(filter(says_idle, (note for take in by_setting[one.key] for note in take.notes)))),
            sentences.get(one.key, {}),
            marked.get(one.key, ""),
        )
        for one in settings
    )
    heard = {key: tuple(_heard(store, take) for take in mine) for key, mine in playable.items()}
    return Results(
        store.folder,
        str(about.get("title", "")),
        str(about.get("model", "")),
        str(about.get("checkpoint", "")),
        str(about.get("created", "")),
        str(about.get("file", "")),
        about.get("definition", {}),
        found,
        references,
        no_reference,
        heard,
        tuple(dict.fromkeys(take.machine for take in takes)),
        tuple(dict.fromkeys(take.clock for take in takes if take.clock)),
        store.trials(),
        _failed(store, takes),
        sum(take.busy_seconds for take in takes) + store.preparing_seconds,
        store.damage,
        tuple(sorted(lost)),
    )


def _failed(store: Store, takes: Iterable[StoredTake]) -> tuple[Failure, ...]:
    said = {take.cell.utterance: (take.text, take.voice) for take in takes}
    return tuple(
        Failure(cell, sentence, *said.get(cell.utterance, ("", ""))) for cell, sentence in store.failures().items()
    )


def figures_of(store: Store, keys: Iterable[str]) -> dict[str, dict[str, Estimate]]:
    """Figures of some settings and of their baselines, where these were run, for a search after every trial."""
    settings = {one.key: one for one in store.settings()}
    wanted = set(keys) | {settings[key].baseline for key in keys}
    return _figures([settings[key] for key in wanted if key in settings], _takes_of(store, wanted))


def _takes_of(store: Store, settings: Collection[str]) -> dict[str, list[StoredTake]]:
    found: dict[str, list[StoredTake]] = defaultdict(list)
    for take in store.takes():
        if take.cell.setting in settings:
            found[take.cell.setting].append(take)
    return found


def margins_of(store: Store, key: str, constraints: Sequence[Constraint]) -> list[Margin]:
    """Margins of a setting for each of ``constraints``, with intervals over sentences, paired with its baseline's."""
    setting = next(one for one in store.settings() if one.key == key)
    if not constraints:
        return []
    by_setting = _takes_of(store, (key, setting.baseline))
    clusters = _Clusters([key, setting.baseline], by_setting)
    ratios = _speed_ups([setting], by_setting)
    found = []
    for constraint in constraints:
        one = metric(constraint.metric)
        if one.of_runs:
            values = _values(one, clusters.takes, ratios)
            found.append(clusters.tail_margin(values, key, setting.baseline, constraint))
            continue
        columns = clusters.of(_values(one, clusters.takes, ratios), one)
        mine = columns.get(key, {})
        usual = dict.fromkeys(mine, _OF_A_BASELINE.get(one.name, 0.0)) if one.relative else {}
        theirs = {**usual, **columns.get(setting.baseline, {})}
        names = [name for name in mine if name in theirs or not constraint.relative]
        reference = np.array([theirs.get(name, 0.0) for name in names])
        found.append(constraint.margin(np.array([mine[name] for name in names]), reference))
    return found


def _heard(store: Store, take: StoredTake) -> PlayableTake:
    rated = ((one.heard, rate) for one in take.verdicts if (rate := error_rate(one.figures)) is not None)
    unrated = next((one.heard for one in take.verdicts if one.heard), "")
    understood, rate = next(rated, (unrated, None))
    return PlayableTake(take.take, take.text, take.voice, take.cell.seed, store.folder, understood, rate)


# --- Figures ----------------------------------------------------------------------------------------------------------
class _Clusters:
    """Takes by setting and cluster: by sentence or, for a setting with only one, by voice and seed. All settings are
    processed at once: thousands take no longer than a few."""

    def __init__(self, keys: Sequence[str], by_setting: Mapping[str, Sequence[StoredTake]]) -> None:
        self.takes: list[StoredTake] = []
        place: list[int] = []
        owner: list[str] = []
        self._names: list[str] = []
        for key in keys:
            takes = by_setting.get(key, ())
            alone = len({take.text for take in takes}) == 1
            names = [f"{take.voice}|{take.cell.seed}" if alone else take.text for take in takes]
            # Sorted, so that a draw has the same sentences for all settings.
            ranks = {name: len(owner) + rank for rank, name in enumerate(sorted(set(names)))}
            owner += [key] * len(ranks)
            self._names += ranks
            self.takes += takes
            place += [ranks[name] for name in names]
        self._place, self._owner = np.array(place, int), np.array(owner, object)

    def estimated(self, values: np.ndarray, one: Metric) -> dict[str, Estimate]:
        """Estimates by setting from the values of all takes (n,), NaN for missing ones."""
        if one.of_runs:
            return self._tails(values)
        takes, together = self._combined(values, one)
        found: dict[str, Estimate] = {}
        present = np.flatnonzero(takes)
        if not len(present):
            return found
        starts = np.flatnonzero(np.r_[True, self._owner[present][1:] != self._owner[present][:-1]])
        lengths = np.diff(np.r_[starts, len(present)])
        for length in np.unique(lengths):
            chosen = starts[lengths == length]
            cells = present[chosen[:, None] + np.arange(length)]
            keys, counts = self._owner[cells[:, 0]], takes[cells].sum(1)
            found |= dict(zip(keys, estimates(together[cells].T, one.statistic, counts.tolist()), strict=True))
        return found

    def _tails(self, values: np.ndarray) -> dict[str, Estimate]:
        """Percentiles over all runs of settings with several."""
        found = {}
        for key, at in self._runs(values).items():
            places = self._place[at].tolist()
            sentences = len(set(places))
            figure = tail_interval(values[at].tolist(), places)
            found[key] = Estimate(*figure, len(at), sentences if sentences > 1 else len(at))
        return found

    def tail_margin(self, values: np.ndarray, key: str, baseline: str, constraint: Constraint) -> Margin:
        """Margin of a setting's percentile, from the same draws as its figure."""
        runs = self._runs(values)
        if key not in runs or (constraint.relative and baseline not in runs):
            return UNKNOWN
        (mine, drawn), (usual, others) = (
            tails(values[runs[one]].tolist(), self._place[runs[one]].tolist()) if one in runs else (0.0, np.zeros(1))
            for one in (key, baseline)
        )
        margin = around(-constraint.excess(mine, usual), -constraint.excess(drawn, others))
        return Margin(*margin, len(set(self._place[runs[key]].tolist())))

    def _runs(self, values: np.ndarray) -> dict[str, list[int]]:
        """Indices of the runs with a value, by setting with several."""
        runs: dict[str, list[int]] = defaultdict(list)
        for at in np.flatnonzero(~np.isnan(values)):
            runs[self._owner[self._place[at]]].append(int(at))
        return {key: at for key, at in runs.items() if len(at) > 1}

    def of(self, values: np.ndarray, one: Metric) -> dict[str, dict[str, complex]]:
        """Values by setting and cluster from those of all takes (n,), NaN for missing ones."""
        takes, together = self._combined(values, one)
        found: dict[str, dict[str, complex]] = defaultdict(dict)
        for at in np.flatnonzero(takes):
            found[self._owner[at]][self._names[at]] = together[at]
        return found

    def _combined(self, values: np.ndarray, one: Metric) -> tuple[np.ndarray, np.ndarray]:
        """Number of takes with a value in each cluster, and their combined value, (clusters,) each."""
        there = ~np.isnan(values)
        place, values = self._place[there], values[there]
        takes = np.bincount(place, minlength=len(self._owner))
        if not len(values):
            return takes, np.zeros(len(takes))
        if one.statistic == "rate":
            sums = [np.bincount(place, part, len(takes)) for part in (values.real, values.imag)]
            return takes, sums[0] + 1j * sums[1]
        if one.statistic == "mean":
            return takes, np.bincount(place, values, len(takes)) / np.maximum(takes, 1)
        ordered = values[np.lexsort((values, place))]
        first = np.cumsum(takes) - takes
        low, high = (np.minimum(first + offset, len(ordered) - 1) for offset in ((takes - 1) // 2, takes // 2))
        return takes, (ordered[low] + ordered[high]) / 2


def _figures(
    settings: Sequence[StoredSetting], by_setting: Mapping[str, Sequence[StoredTake]]
) -> dict[str, dict[str, Estimate]]:
    found: dict[str, dict[str, Estimate]] = defaultdict(dict)
    clusters = _Clusters([one.key for one in settings], by_setting)
    ratios = _speed_ups(settings, by_setting)
    for one in METRICS:
        for key, figure in clusters.estimated(_values(one, clusters.takes, ratios), one).items():
            found[key][one.name] = figure
        if one.relative:
            value = _OF_A_BASELINE.get(one.name, 0.0)
            for setting in settings:
                takes = by_setting.get(setting.key, ())
                if one.name == "speed_up":
                    takes = [take for take in takes if take.clock_seconds > 0]
                if setting.origin == BASELINE and takes:
                    texts = len({take.text for take in takes})
                    found[setting.key][one.name] = Estimate(value, value, value, len(takes), texts)
    return found


def _sentences(
    settings: Sequence[StoredSetting], by_setting: Mapping[str, Sequence[StoredTake]]
) -> dict[str, dict[str, dict[str, complex]]]:
    """Judged figures by setting, metric and sentence."""
    found: dict[str, dict[str, dict[str, complex]]] = defaultdict(dict)
    clusters = _Clusters([one.key for one in settings], by_setting)
    judges = {said.judge for take in clusters.takes for said in take.verdicts}
    for one in (each for each in JUDGED if each.judge in judges):
        for key, values in clusters.of(_values(one, clusters.takes, {}), one).items():
            found[key][one.name] = values
    return found


def _values(one: Metric, takes: Sequence[StoredTake], ratios: Mapping[Cell, float]) -> np.ndarray:
    """The takes' values, (takes,); NaN for missing ones. ``ratios``: speed-ups."""
    values: list[complex | None]
    if one.name == "speed_up":
        values = [ratios.get(take.cell) for take in takes]
    elif one.across_seeds is not None:
        shared = _across_seeds(one, takes)
        values = [shared.get(take.cell) for take in takes]
    else:
        values = [value_of(one, take) for take in takes]
    kind = complex if one.statistic == "rate" else float
    return np.array([np.nan if value is None else value for value in values], kind)


def value_of(one: Metric, take: StoredTake) -> complex | None:
    judged = _judged(one, take.verdicts)
    if judged is not None or one.of is None:
        return judged
    return one.of(take.measurements, take.metrics, take.log_mel_distance)


def _judged(one: Metric, verdicts: Iterable[Verdict]) -> complex | None:
    """Metric of a recording from judges' verdicts; ``None`` also if a verdict lacks the required figures."""
    if one.verdict is None:
        return None
    said = next((said for said in verdicts if said.judge == one.judge), None)
    try:
        return None if said is None else one.verdict(said.figures)
    except (KeyError, ZeroDivisionError):
        return None


def _across_seeds(one: Metric, takes: Sequence[StoredTake]) -> dict[Cell, float]:
    """Value over takes that differ only in their seeds, for each of them."""
    groups: dict[tuple[str, str], list[tuple[Cell, np.ndarray]]] = defaultdict(list)
    for take in takes:
        curve = next((said.curve for said in take.verdicts if said.judge == one.judge), ())
        if curve:
            groups[take.cell.setting, take.cell.utterance].append((take.cell, np.array(curve)))
    found: dict[Cell, float] = {}
    for group in groups.values():
        value = one.across_seeds([curve for _, curve in group]) if one.across_seeds is not None else None
        if value is not None:
            found |= {cell: value for cell, _ in group}
    return found


def _speed_ups(settings: Sequence[StoredSetting], by_setting: Mapping[str, Sequence[StoredTake]]) -> dict[Cell, float]:
    """Baseline's seconds over a take's own, for takes whose baseline was measured on the same machine."""
    found = {}
    baselines = {
        key: {(take.cell.utterance, take.cell.seed, take.cell.round): take for take in by_setting.get(key, ())}
        for key in {one.baseline for one in settings}
    }
    for one in settings:
        if one.baseline == one.key:
            continue
        for take in by_setting.get(one.key, ()):
            other = baselines[one.baseline].get((take.cell.utterance, take.cell.seed, take.cell.round))
            if other is not None and other.machine == take.machine and take.clock_seconds > 0:
                found[take.cell] = other.clock_seconds / take.clock_seconds
    return found


def _marks(settings: Sequence[StoredSetting], by_setting: Mapping[str, Sequence[StoredTake]]) -> dict[str, str]:
    """Knee and saturation of each server's closed loops, by setting. As all clients ask all the time, they get their
    number times the audio of a second of waiting (Little's law)."""
    loads: dict[Setting, list[tuple[str, dict[str, float]]]] = defaultdict(list)
    for one in settings:
        options, spoken = one.setting.options, [take.measurements for take in by_setting[one.key]]
        if one.origin == SERVER and "clients" in options and (seconds := [each.seconds for each in spoken]):
            other = Values({name: value for name, value in options.items() if name != "clients"})
            made = options["clients"] * sum(each.audio_seconds for each in spoken) / sum(seconds)
            row = {"clients": options["clients"], "latency_p50": median(seconds), "audio_seconds_per_second": made}
            loads[replace(one.setting, options=other)].append((one.key, row))
    return {
        mine[place][0]: words for mine in loads.values() for place, words in marks([row for _, row in mine]).items()
    }


def _references(store: Store) -> tuple[dict[str, Estimate], str]:
    """The judges' scores of the reference speech, and the reason if it is missing."""
    found = store.references()
    why_not = next((why for _, why in found.values() if why), "")
    figures: dict[str, Estimate] = {}
    for one in JUDGED:
        said = (_judged(one, verdicts) for verdicts, _ in found.values())
        if values := [value for value in said if value is not None]:
            figures[one.name] = estimate(one.name, values)
    return figures, why_not


def to_json(found: Results) -> dict:
    return {
        "title": found.title,
        "model": found.model,
        "checkpoint": found.checkpoint,
        "folder": str(found.folder),
        "created": found.created,
        "machines": list(found.machines),
        "clocks": list(found.clocks),
        "settings": [
            {
                "key": one.key,
                "name": one.name,
                "origin": one.origin,
                "setting": one.setting.to_json(),
                "takes": one.finished,
                "busy_takes": one.busy,
                "nothing_skipped": list(one.idle),
                "mark": one.mark,
                "problem": one.problem,
                "figures": {name: _figure_json(figure) for name, figure in one.figures.items()},
                "paired": [asdict(test) for test in found.paired(one.key)],
                "worst": [
                    {
                        "audio": str(take.path),
                        "text": take.text,
                        "heard": take.understood,
                        "error_rate": take.error_rate,
                    }
                    for take in found.worst(one.key)
                ],
            }
            for one in found.settings
        ],
        "reference_speech": {name: _figure_json(figure) for name, figure in found.references.items()},
        "no_reference_speech": found.no_reference,
        "failures": list(found.failures),
        "lost_audio": list(found.lost),
        "trials": [asdict(one) for one in found.trials],
        "definition": json.loads(json.dumps(dict(found.definition))),
    }


def _figure_json(one: Estimate) -> dict:
    return {"value": one.value, "low": one.low, "high": one.high, "n": one.n, "sentences": one.clusters}


# --- Estimated time of a study before it begins -----------------------------------------------------------------------
def pace(model: str, takes: Iterable[tuple[Setting, str, Measurements]]) -> float | None:
    """Median synthesis seconds per character of text for ``model`` without techniques, from ``takes`` (setting, text,
    measurements); ``None`` without any."""
    found = [
        measured.seconds / len(text)
        for setting, text, measured in takes
        if setting.model == model and not setting.techniques and text and measured.seconds > 0
    ]
    return median(found) if found else None


def estimated_seconds(study: Study, pace: float | None) -> float | None:
    """Seconds of all takes of ``study`` at ``pace``, without techniques, calibration and judging."""
    if pace is None:
        return None
    characters = sum(len(one.text) for one in study.utterances)
    return pace * characters * study.takes / len(study.utterances)
