"""What a study found so far: per setting, every metric with its interval. Torch-free; what views and reports read.

A figure of a setting is from its finished takes. Takes of one sentence (its voices, seeds and rounds) are brought
together first, by their mean or median; the figure is the mean or median over the sentences, and its interval a
bootstrap over them. With a single sentence the interval is over its voices and seeds.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean, median

import numpy as np

from engine.measure.estimates import Estimate, estimates
from engine.measure.metrics import METRICS, Metric, metric
from engine.setting import Setting
from engine.studies.front import costs_of, front
from engine.studies.store import Store, StoredSetting, StoredTake, StoredTrial
from engine.studies.study import BASELINE

VERDICTS: Mapping[str, tuple[str, Callable[[Mapping[str, float]], complex]]] = {
    "word_error_rate": ("words", lambda figures: complex(figures["edits"], figures["words"])),
    "whisper_word_error_rate": ("whisper", lambda figures: figures["edits"] / figures["words"]),
    "speaker_similarity": ("similarity", lambda figures: figures["similarity"]),
    "utmos": ("utmos", lambda figures: figures["utmos"]),
}
"""Metrics that come from judges: whose they are, and their value from what the judge says of one take."""
_OF_A_BASELINE = {"speed_up": 1.0}
"""What relative metrics are for the baseline itself, by definition; 0 for all others."""


@dataclass(frozen=True)
class SettingResult:
    """What was found of one setting."""

    key: str
    name: str
    origin: str
    """``baseline``, ``list``, ``grid`` or ``search``."""
    setting: Setting
    baseline: str
    """Key of its baseline; its own for a baseline."""
    figures: Mapping[str, Estimate]
    """By the metric's name; those that could be measured."""
    takes: tuple[str, ...] = ()
    """Ids of its takes that can be heard."""
    finished: int = 0
    """Finished takes, all rounds."""
    problem: str = ""
    """Why it cannot be run, or ``""``."""

    def value(self, name: str) -> float | None:
        """The value of a metric, or ``None``."""
        found = self.figures.get(name)
        return None if found is None else found.value


@dataclass(frozen=True)
class Heard:
    """One take that can be heard."""

    take: str
    text: str
    voice: str
    seed: int
    path: Path
    understood: str = ""
    """What the first judge that understands words heard."""


@dataclass(frozen=True)
class Results:
    """What a study found so far."""

    folder: Path
    title: str
    model: str
    checkpoint: str
    created: str
    file: str
    """The file that the study was read from."""
    definition: Mapping[str, object] = field(repr=False)
    settings: tuple[SettingResult, ...] = ()
    references: Mapping[str, Estimate] = field(default_factory=dict)
    """By the metric's name: what its judge says of the reference speech, its floor."""
    no_reference: str = ""
    """Why there is no reference speech, where there is none."""
    heard: Mapping[str, tuple[Heard, ...]] = field(default_factory=dict, repr=False)
    """By the setting's key."""
    machines: tuple[str, ...] = ()
    clocks: tuple[str, ...] = ()
    """What speed-ups are measured by."""
    trials: tuple[StoredTrial, ...] = ()
    failures: tuple[str, ...] = ()
    """Sentences that say why takes could not be made."""
    busy_seconds: float = 0.0
    """Wall seconds that workers were busy with takes."""
    damage: str = ""
    """What is wrong with the study's file, or ``""``."""

    def setting(self, key: str) -> SettingResult | None:
        """The setting called ``key``."""
        return next((one for one in self.settings if one.key == key), None)

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """Those that any setting has."""
        return tuple(one for one in METRICS if any(one.name in found.figures for found in self.settings))

    def front(self, names: Sequence[str]) -> frozenset[str]:
        """Keys of the settings that no other one beats in all the metrics ``names``."""
        values = np.array([[_number(one.value(name)) for name in names] for one in self.settings])
        if not len(values):
            return frozenset()
        best = front(costs_of(values, tuple(metric(name).better for name in names)))
        return frozenset(one.key for one, on in zip(self.settings, best, strict=True) if on)


def read(folder: str | Path) -> Results:
    """The results of the study in ``folder``. Raises :class:`engine.errors.StudyError`."""
    with Store(folder, read_only=True) as store:
        return results(store)


def results(store: Store) -> Results:
    """The results of an opened study."""
    about, settings, takes = store.about(), store.settings(), store.takes()
    by_setting: dict[str, list[StoredTake]] = defaultdict(list)
    for take in takes:
        by_setting[take.cell.setting].append(take)
    figures = _figures(settings, by_setting)
    references, no_reference = _references(store)
    found = tuple(
        SettingResult(
            one.key,
            one.name,
            one.origin,
            one.setting,
            one.baseline,
            figures.get(one.key, {}),
            tuple(take.take for take in by_setting[one.key] if take.cell.round == 0),
            len(by_setting[one.key]),
            one.problem,
        )
        for one in settings
    )
    heard = {
        key: tuple(_heard(store, take) for take in mine if take.cell.round == 0) for key, mine in by_setting.items()
    }
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
        tuple(dict.fromkeys(take.clock for take in takes)),
        store.trials(),
        tuple(dict.fromkeys(store.failures().values())),
        sum(take.busy_seconds for take in takes),
        store.damage,
    )


def figures_of(store: Store, keys: Iterable[str]) -> dict[str, dict[str, Estimate]]:
    """The figures of some settings only, and of their baselines: what a search asks for after every trial."""
    settings = {one.key: one for one in store.settings()}
    wanted = set(keys) | {settings[key].baseline for key in keys}
    by_setting: dict[str, list[StoredTake]] = defaultdict(list)
    for take in store.takes():
        if take.cell.setting in wanted:
            by_setting[take.cell.setting].append(take)
    return _figures([settings[key] for key in wanted], by_setting)


def _heard(store: Store, take: StoredTake) -> Heard:
    understood = next((one.heard for one in take.verdicts if one.heard), "")
    return Heard(take.take, take.text, take.voice, take.cell.seed, store.audio_path(take.take), understood)


# --- Figures ----------------------------------------------------------------------------------------------------------
Clusters = dict[str, list[complex]]
"""Values of takes by what they are clustered by."""


def _figures(
    settings: Sequence[StoredSetting], by_setting: Mapping[str, Sequence[StoredTake]]
) -> dict[str, dict[str, Estimate]]:
    found: dict[str, dict[str, Estimate]] = defaultdict(dict)
    baselines: dict[str, dict[tuple, StoredTake]] = {}
    for one in settings:
        if one.baseline not in baselines:
            takes = by_setting.get(one.baseline, ())
            baselines[one.baseline] = {(t.cell.utterance, t.cell.seed, t.cell.round): t for t in takes}
    for one in METRICS:
        values: dict[str, Clusters] = {}
        for setting in settings:
            takes = by_setting.get(setting.key, ())
            if one.relative and setting.origin == BASELINE and takes:
                value = _OF_A_BASELINE.get(one.name, 0.0)
                found[setting.key][one.name] = Estimate(value, value, value, len(takes), len({t.text for t in takes}))
                continue
            clusters = _clusters(_values(one, takes, baselines[setting.baseline]))
            if clusters:
                values[setting.key] = clusters
        for key, estimate in _estimated(values, one).items():
            found[key][one.name] = estimate
    return found


def _values(
    one: Metric, takes: Sequence[StoredTake], baseline: Mapping[tuple, StoredTake]
) -> list[tuple[StoredTake, complex]]:
    """Each take's value, of those that have one."""
    found: list[tuple[StoredTake, complex]] = []
    for take in takes:
        value: complex | None = None
        if one.name == "speed_up":
            other = baseline.get((take.cell.utterance, take.cell.seed, take.cell.round))
            if other is not None and other.machine == take.machine and take.clock_seconds > 0:
                value = other.clock_seconds / take.clock_seconds
        elif one.name in VERDICTS:
            judge, of = VERDICTS[one.name]
            said = next((verdict for verdict in take.verdicts if verdict.judge == judge), None)
            value = of(said.figures) if said is not None else None
        elif one.of is not None:
            value = one.of(take.measurements, take.metrics, take.log_mel_distance)
        if value is not None:
            found.append((take, value))
    return found


def _clusters(values: Sequence[tuple[StoredTake, complex]]) -> Clusters:
    """By sentence or, where there is one only, by voice and seed."""
    one_sentence = len({take.text for take, _ in values}) == 1
    clusters: Clusters = defaultdict(list)
    for take, value in values:
        clusters[f"{take.voice}|{take.cell.seed}" if one_sentence else take.text].append(value)
    return clusters


def _estimated(values: Mapping[str, Clusters], one: Metric) -> dict[str, Estimate]:
    """All settings at once, those with as many clusters together: so 2000 settings take no longer than a few."""
    groups: dict[int, list[str]] = defaultdict(list)
    for key, clusters in values.items():
        groups[len(clusters)].append(key)
    found = {}
    for keys in groups.values():
        # Sorted, so that a draw has the same sentences for all settings.
        columns = [[_together(values[key][name], one) for name in sorted(values[key])] for key in keys]
        counts = [sum(map(len, values[key].values())) for key in keys]
        matrix = np.array(columns).T
        matrix = matrix if one.statistic == "rate" else matrix.real
        found |= dict(zip(keys, estimates(matrix, one.statistic, counts), strict=True))
    return found


def _together(values: Sequence[complex], one: Metric) -> complex:
    """What the takes of one cluster come to."""
    if one.statistic == "rate":
        return sum(values)
    return median(value.real for value in values) if one.statistic == "median" else fmean(v.real for v in values)


def _references(store: Store) -> tuple[dict[str, Estimate], str]:
    """What the judges say of the reference speech, and why there is none."""
    found = store.references()
    why_not = next((why for _, why in found.values() if why), "")
    figures: dict[str, Estimate] = {}
    for name, (judge, of) in VERDICTS.items():
        values = [of(one.figures) for verdicts, _ in found.values() for one in verdicts if one.judge == judge]
        if values:
            rate = metric(name).statistic == "rate"
            matrix = np.array(values)[:, None]
            (figures[name],) = estimates(matrix if rate else matrix.real, metric(name).statistic, [len(values)])
    return figures, why_not


def _number(value: float | None) -> float:
    return float("nan") if value is None else value


def to_json(found: Results) -> dict:
    """Plain JSON values."""
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
                "problem": one.problem,
                "figures": {name: _figure_json(figure) for name, figure in one.figures.items()},
            }
            for one in found.settings
        ],
        "reference_speech": {name: _figure_json(figure) for name, figure in found.references.items()},
        "no_reference_speech": found.no_reference,
        "failures": list(found.failures),
        "trials": [
            {"number": one.number, "params": dict(one.params), "setting": one.setting, "state": one.state}
            | {"outcome": dict(one.outcome)}
            for one in found.trials
        ],
        "definition": json.loads(json.dumps(dict(found.definition))),
    }


def _figure_json(one: Estimate) -> dict:
    return {"value": one.value, "low": one.low, "high": one.high, "n": one.n, "sentences": one.clusters}
