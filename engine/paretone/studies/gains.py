"""Measured gains of techniques on a machine, from takes that differ in one technique and from studies; and published
gains. Torch-free.

A gain is the ratio of the technique's target metric (``Technique.improves``) without it to that with it, so 2 is twice
as fast. Both takes of a pair have the same text, voice, weights, options, other techniques, device and machine. In a
study, settings with one technique are compared with their baselines.
"""

from __future__ import annotations

import tomllib
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from statistics import median
from typing import TYPE_CHECKING, Any

from paretone.by_name import by_name
from paretone.errors import SettingError
from paretone.measure.machine import hardware
from paretone.measure.metrics import metric
from paretone.measure.processor_time import clock_name
from paretone.paths import resource
from paretone.setting.library import TakeSummary
from paretone.setting.setting import Setting, UsedTechnique
from paretone.techniques import find, knobs_of

if TYPE_CHECKING:
    from paretone.studies.results import Results


MOST_PAIRS = 9
"""A gain is the median over this many newest pairs."""


@dataclass(frozen=True)
class Place:
    """A model with its weights on a device of a machine."""

    model: str
    checkpoint: str
    """SHA-256 of the weights, hexadecimal."""
    device: str
    """Device title, as in measurements."""
    device_type: str
    machine: str
    """One-line description."""


@dataclass(frozen=True)
class Gain:
    entry: UsedTechnique
    """The technique with all its knobs, without artefact."""
    ratio: float
    """The metric without the technique over that with it."""
    pairs: int
    created: str
    """Time of the last take, UTC, ISO 8601."""
    others: tuple[str, ...] = ()
    """Names of the techniques used in both takes of each pair."""
    interval: tuple[float, float] | None = None
    """95 % interval of the ratio, if known."""
    study: str = ""
    """Title of the measuring study; ``""`` for takes of the library."""


def completed(setting: Setting) -> Setting | None:
    """``setting`` with all knobs of its techniques and without seed and artefacts; ``None`` if a technique is not
    installed or has other knobs now."""
    try:
        techniques = tuple(UsedTechnique(one.technique, knobs_of(one)) for one in setting.techniques)
    except SettingError:
        return None
    return replace(setting, techniques=techniques, seed=0)


def of_takes(takes: Iterable[TakeSummary], place: Place) -> tuple[Gain, ...]:
    groups: dict[tuple[str, str, str, Setting], list[TakeSummary]] = defaultdict(list)
    for take in takes:
        ours = (
            take.setting.model == place.model
            and take.checkpoint == place.checkpoint != ""
            and take.measurements.device == place.device
            and hardware(take.machine) == hardware(place.machine)
        )
        if ours and (setting := completed(take.setting)) is not None:
            groups[take.text, take.voice, take.machine, setting].append(take)
    found: dict[tuple[UsedTechnique, tuple[str, ...]], list[tuple[float, str]]] = defaultdict(list)
    for (text, voice, machine, setting), mine in groups.items():
        for entry in setting.techniques:
            without = setting.without(entry.technique)
            pairs = found[entry, tuple(other.technique for other in without.techniques)]
            pairs += _pairs(entry, mine, groups.get((text, voice, machine, without), []), MOST_PAIRS - len(pairs))
    return tuple(
        Gain(entry, median(ratio for ratio, _ in pairs), len(pairs), max(created for _, created in pairs), others)
        for (entry, others), pairs in found.items()
        if pairs
    )


def _pairs(
    entry: UsedTechnique, mine: Sequence[TakeSummary], others: Sequence[TakeSummary], most: int
) -> Iterator[tuple[float, str]]:
    """Ratios of the ``most`` newest of ``mine``, each to the take of ``others`` next before it, with its time."""
    of = metric(improved(entry.technique)).of
    if of is None or not others:
        return
    in_order = sorted(others, key=lambda one: one.created)
    for take in sorted(mine, key=lambda one: one.created, reverse=True)[:most]:
        other = in_order[max(0, bisect_right(in_order, take.created, key=lambda one: one.created) - 1)]
        values = [of(one.measurements, one.metrics, one.log_mel_distance) for one in (other, take)]
        if values[0] and values[1]:
            yield values[0] / values[1], take.created


def improved(technique: str) -> str:
    declared = find(technique)
    return declared.improves if declared else "real_time_factor"


def best_known(gains: Iterable[Gain], entry: UsedTechnique) -> Gain | None:
    """Best known gain of a technique: with the knobs of ``entry``, then alone, then from studies, then the newest."""
    return max(
        [one for one in gains if one.entry.technique == entry.technique],
        key=lambda one: (one.entry.knobs == entry.knobs, not one.others, bool(one.study), one.created),
        default=None,
    )


# --- In studies -------------------------------------------------------------------------------------------------------
def of_study(found: Results, place: Place) -> tuple[Gain, ...]:
    """Gains from a study at ``place``; empty if it ran on other machines or with other weights."""
    machines = {hardware(one) for one in found.machines}
    elsewhere = machines != {hardware(place.machine)} or set(found.clocks) != {clock_name(place.device_type)}
    if elsewhere or found.model != place.model or found.checkpoint != place.checkpoint:
        return ()
    gains = []
    for one in found.settings:
        setting, baseline = completed(one.setting), found.setting(one.baseline)
        if setting is None or baseline is None or len(setting.techniques) != 1 or baseline.setting.techniques:
            continue
        entry = setting.techniques[0]
        name = improved(entry.technique)
        before, after = baseline.value(name), one.value(name)
        if name == "real_time_factor":
            gain = one.figures.get("speed_up")
            if gain is not None:
                interval = (gain.low, gain.high) if gain.spreads else None
                gains.append(Gain(entry, gain.value, gain.n, found.created, (), interval, found.title))
        elif before and after:
            gains.append(Gain(entry, before / after, one.finished, found.created, study=found.title))
    return tuple(gains)


# --- Published results, as ratios to their own baselines --------------------------------------------------------------
_FIELDS = {
    "rtf": ("RTF", "real_time_factor"),
    "backbone_rtf": ("backbone RTF", "backbone_time_factor"),
    "first_audio_p90_ms": ("TTFA (P90, ms)", "first_audio_p90"),
    "ops_ratio": ("ops ratio", "ops_ratio"),
    "whisper_wer": ("WER by Whisper (%)", "whisper_word_error_rate"),
    "wer": ("WER (%)", ""),
    "cer": ("CER (%)", ""),
    "sim_o": ("SIM-o", "speaker_similarity"),
    "ss": ("SS", ""),
    "utmos": ("UTMOS", "utmos"),
    "nisqa": ("MOS predicted by NISQA", ""),
    "nmos": ("predicted NMOS", ""),
    "nat_mos": ("naturalness MOS by listeners", "listening:naturalness_mos"),
    "sim_mos": ("similarity MOS by listeners", "listening:similarity_mos"),
}
"""Fields of a point in words, with the same judge's or test's figure here; those without one are not drawn."""


@dataclass(frozen=True)
class PublishedPoint:
    series: str
    """Name of its table, by which studies refer to it."""
    paper: str
    model: str
    label: str
    technique: str
    """Name of its technique, or ``""``."""
    baseline: bool
    ratios: Mapping[str, float]
    """Each figure over the baseline's; ``speed_up``, of the whole synthesis, is the baseline's RTF over its own."""
    values: Mapping[str, float] = field(repr=False)
    """As published, by field of ``published.toml``."""
    source: str = ""
    hardware: str = ""
    data: str = ""
    rtf: str = ""
    """Parts included in the paper's real-time factor."""
    judges: str = ""
    """Who or what measured the quality."""

    @property
    def figures(self) -> tuple[str, ...]:
        """Names of the metrics that measure its values here."""
        return tuple(found for name in self.values if (found := _FIELDS[name][1]) and ":" not in found)

    @property
    def as_published(self) -> str:
        """Absolute values, such as ``RTF 0.178, SIM-o 0.64``."""
        return ", ".join(f"{_FIELDS[name][0]} {value:g}" for name, value in self.values.items())


@lru_cache(maxsize=1)
def published() -> tuple[PublishedPoint, ...]:
    """All published points by series, baseline first."""
    data = tomllib.loads(resource("published.toml").read_text(encoding="utf-8"))
    found = []
    for series in data["series"]:
        more = {name: series[name] for name in ("paper", "model", "source", "hardware", "data", "rtf")}
        more["series"] = series["name"]
        more["judges"] = series.get("judges", "")
        first = _values(series["points"][0])
        for index, point in enumerate(series["points"]):
            values = _values(point)
            ratios = {
                _FIELDS[name][1]: value / first[name]
                for name, value in values.items()
                if _FIELDS[name][1] and name in first
            }
            if "real_time_factor" in ratios:
                ratios["speed_up"] = 1.0 / ratios["real_time_factor"]
            more |= {"label": point["label"], "technique": point.get("technique", series["technique"])}
            found.append(PublishedPoint(baseline=index == 0, ratios=ratios, values=values, **more))
    return tuple(found)


def published_rows(series: str) -> tuple[PublishedPoint, ...]:
    """Points of one table, baseline first. Raises :class:`SettingError` for an unknown name."""
    tables: dict[str, list[PublishedPoint]] = defaultdict(list)
    for one in published():
        tables[one.series].append(one)
    return tuple(by_name(series, tables, "published table", "published tables"))


def _values(point: Mapping[str, Any]) -> dict[str, float]:
    return {name: float(point[name]) for name in _FIELDS if name in point}
