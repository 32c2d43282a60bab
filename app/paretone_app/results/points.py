"""Points of the trade-off view, with their figures: takes, settings of studies, published results. No Qt, no torch."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from paretone.errors import SettingError
from paretone.listening.results import ListeningScore
from paretone.measure.estimates import Estimate
from paretone.measure.metrics import METRICS, figure_of
from paretone.serving.records import ServerRecord, marks
from paretone.setting.library import TakeSummary
from paretone.setting.setting import Setting
from paretone.studies.gains import published
from paretone.studies.results import Results, SettingResult
from paretone.studies.study import SERVER as SERVER_ORIGIN
from paretone.studies.wording import setting_title
from paretone.techniques import find
from paretone.techniques.registry import in_order
from paretone_app.listening.stimuli import setting_key
from paretone_app.state.differences import label_of, model_title, technique_text

TAKE, STUDY, PUBLISHED, SERVER = "take", "study", "published", "server"
TAKES, SERVERS = "Takes", "Servers"
LISTENING = "listening:"
"""Prefix of the names of listening scores; the method follows."""
_NO_FIGURES: Mapping[str, Estimate] = {}


@dataclass(frozen=True)
class Sound:
    """One take of a point, with the properties that distinguish it from the others."""

    take: str
    text: str
    voice: str
    seed: int

    @property
    def spoken(self) -> tuple[str, str, int]:
        """Equal for takes of any point with the same text, voice and seed."""
        return self.text, self.voice, self.seed


@dataclass(frozen=True)
class Point:
    key: str
    """Id of a take, or folder and setting of a study's point."""
    kind: str
    """``TAKE``, ``STUDY``, ``PUBLISHED`` or ``SERVER``."""
    title: str
    source: str
    """``TAKES``, the study's title, or the paper."""
    model: str
    techniques: tuple[str, ...]
    """By name; the first determines the symbol."""
    figures: Mapping[str, Estimate] = field(repr=False, compare=False)
    """By name of the metric or listening score."""
    baseline: Mapping[str, Estimate] = field(default_factory=dict, repr=False, compare=False)
    """The baseline's figures; empty without one."""
    setting: Setting | None = None
    """The setting used; for studies without seed and artefacts. ``None`` for published results and servers."""
    sounds: tuple[Sound, ...] = field(default=(), repr=False)
    folder: Path | None = None
    machines: tuple[str, ...] = ()
    finished: int = 0
    """Number of its takes, all rounds."""
    busy: int = 0
    """Number of its takes made while other programs kept the machine busy."""
    remarks: tuple[str, ...] = ()
    floors: Mapping[str, Estimate] = field(default_factory=dict, repr=False, compare=False)
    """By metric: the same judge's score of the reference speech, below which settings cannot be distinguished."""

    @property
    def published(self) -> bool:
        return self.kind == PUBLISHED

    @property
    def further(self) -> tuple[str, ...]:
        """Its remarks but the one that says what it is, of takes and measured servers."""
        return self.remarks[self.kind == TAKE or (self.kind == SERVER and self.folder is None) :]

    @cached_property
    def candidate(self) -> str:
        """Key of its setting without seed and artefacts, as in studies; ``""`` for published results."""
        return "" if self.setting is None else candidate_key(self.setting)

    @property
    def voices(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(one.voice for one in self.sounds))

    @cached_property
    def haystack(self) -> str:
        texts = dict.fromkeys(one.text for one in self.sounds)
        return " ".join((self.title, self.source, self.model, *self.voices, *texts, *self.remarks)).casefold()


@lru_cache(maxsize=65_536)
def candidate_key(setting: Setting) -> str:
    return setting.bare.fingerprint


def brief(title: str) -> str:
    """A title without its bracketed part."""
    return re.sub(r" \([^)]*\)", "", title)


def technique_title(name: str) -> str:
    """A technique's short title; its name if it no longer exists."""
    found = find(name)
    return brief(found.title) if found is not None else name


class Scores:
    """Listening scores by setting; of several with one method, the score with most answers counts."""

    def __init__(self, scores: Sequence[ListeningScore] = ()) -> None:
        self._by_setting: dict[str, dict[str, Estimate]] = {}
        self._by_candidate: dict[str, dict[str, Estimate]] = {}
        for one in sorted(scores, key=lambda one: one.n):
            figure = Estimate(one.mean, one.low, one.high, one.n, one.n)
            for key, known in ((one.setting, self._by_setting), (one.candidate, self._by_candidate)):
                if key:
                    known.setdefault(key, {})[LISTENING + one.method] = figure

    def of_take(self, setting: Setting) -> Mapping[str, Estimate]:
        return self._by_setting.get(setting_key(setting), _NO_FIGURES) if self._by_setting else _NO_FIGURES

    def of_candidate(self, key: str) -> Mapping[str, Estimate]:
        return self._by_candidate.get(key, _NO_FIGURES)


class MadePoint(NamedTuple):
    """A take's point, and what it was made of."""

    take: TakeSummary
    scores: Scores
    spoken: tuple[str, ...]
    """Equal for takes with the same text, voice, weights, options and seed."""
    point: Point


def take_points(
    takes: Sequence[TakeSummary], scores: Scores, made: dict[str, MadePoint] | None = None
) -> tuple[Point, ...]:
    """One point per take of the library. Its baseline is the take its fidelity was measured against, else the newest
    take without techniques and with the same text, voice, options, seed and weights. ``made`` keeps the points by take
    for the next call, which makes those that changed."""
    made = {} if made is None else made
    before, plain = made.copy(), dict[tuple[str, ...], MadePoint]()
    made.clear()
    for one in takes:  # Newest first.
        found = before.get(one.id)
        if found is None or found.take is not one or found.scores is not scores:
            point = Point(
                one.id,
                TAKE,
                technique_text(one.setting),
                TAKES,
                model_title(one.setting.model),
                in_order(entry.technique for entry in one.setting.techniques),
                figures_of(one, scores),
                setting=one.setting,
                sounds=(Sound(one.id, one.text, one.voice, one.setting.seed),),
                machines=(one.machine,) if one.machine else (),
                finished=1,
                busy=int(one.measurements.busy),
                remarks=(label_of(one),) if one.label else (),
            )
            spoken = one.text, one.voice, one.checkpoint, one.setting.baseline.fingerprint
            found = MadePoint(one, scores, spoken, point)
        made[one.id] = found
        if not one.setting.techniques:
            plain.setdefault(found.spoken, found)
    for name, one in tuple(made.items()):
        other = (made.get(one.take.fidelity_to) or plain.get(one.spoken)) if one.take.setting.techniques else one
        alike = other is not None and other.take.machine == one.take.machine
        baseline = other.point.figures if other is not None and alike else _NO_FIGURES
        if one.point.baseline is not baseline:
            made[name] = one._replace(point=replace(one.point, baseline=baseline))
    return tuple(one.point for one in made.values())


def figures_of(one: TakeSummary, scores: Scores) -> dict[str, Estimate]:
    """Measurements of a take by metric, and listening scores of its setting."""
    found: dict[str, Estimate] = {}
    for metric in METRICS:
        if metric.of is not None and metric.relative and not one.setting.techniques:
            # A baseline has distance 0 to itself, as in studies.
            found[metric.name] = Estimate(0.0, 0.0, 0.0, 1, 1)
        elif (figure := figure_of(metric, one)) is not None:
            found[metric.name] = figure
    return {**found, **scores.of_take(one.setting)}


def study_points(found: Results, scores: Scores, machines: Mapping[str, Sequence[str]]) -> tuple[Point, ...]:
    """One point per setting of a study, servers included; ``machines`` are those of its takes, by setting key."""
    figures = {one.key: {**one.figures, **scores.of_candidate(one.key)} for one in found.settings}
    model = model_title(found.model)
    return tuple(
        Point(
            f"{found.folder}#{one.key}",
            SERVER if one.origin == SERVER_ORIGIN else STUDY,
            study_title(one),
            found.title or found.folder.stem,
            one.setting.model if one.origin == SERVER_ORIGIN else model,
            in_order(entry.technique for entry in one.setting.techniques),
            figures[one.key],
            figures.get(one.baseline, _NO_FIGURES),
            None if one.origin == SERVER_ORIGIN else one.setting,
            tuple(Sound(heard.take, heard.text, heard.voice, heard.seed) for heard in found.heard.get(one.key, ())),
            found.folder,
            tuple(machines.get(one.key, ())),
            one.finished,
            one.busy,
            (one.problem,) if one.problem else (),
            found.references,
        )
        for one in found.settings
    )


def study_title(one: SettingResult) -> str:
    try:
        return brief(setting_title(one))
    except SettingError:  # Studies outlive techniques.
        return one.name or technique_text(one.setting)


def published_points() -> tuple[Point, ...]:
    """Points of published results, as ratios without intervals, because the papers give none."""
    found = []
    for place, one in enumerate(published()):
        figures = {name: Estimate(ratio, ratio, ratio, 0, 0) for name, ratio in one.ratios.items()}
        remarks = [f"Source: {one.source}", f"Hardware: {one.hardware}", f"Data: {one.data}"]
        if one.judges:
            remarks.append(f"Judges: {one.judges}")
        remarks.append(f"As published: {one.as_published}")
        if one.rtf:
            remarks.append(f"Its RTF counts the {one.rtf}")
        techniques = (one.technique,) if one.technique and not one.baseline else ()
        title = f"{one.model}, {one.label}" + (" (its own baseline)" if one.baseline else "")
        found.append(
            Point(
                f"published:{place}", PUBLISHED, title, one.paper, one.model, techniques, figures, remarks=(*remarks,)
            )
        )
    return tuple(found)


def server_points(records: Sequence[ServerRecord], replies: Sequence[TakeSummary]) -> tuple[Point, ...]:
    """One point per measured server, at :data:`paretone.serving.records.TYPICAL` clients or the nearest load, with
    those of its ``replies`` that are takes."""
    found = []
    sounds = {one.id: Sound(one.id, one.text, one.voice, one.setting.seed) for one in replies}
    for one in records:
        load, marked = str(one.typical["load"]), marks(one.loads)
        remarks = [f"A server at {load}, measured {one.made[:10]} from {one.machine}"]
        remarks += [f"{words.capitalize()} at {one.loads[place]['load']}" for place, words in marked.items()]
        failed = one.typical.get("failed", 0)
        remarks += [f"{failed} of {one.typical['requests']} requests failed"] if failed else []
        title = f"{one.title}, at {load}"
        known: dict[str, Any] = {"figures": one.figures(), "remarks": tuple(remarks), "finished": 1}
        known["sounds"] = tuple(sounds[take] for take in one.typical.get("takes", ()) if take in sounds)
        found.append(Point(f"server:{one.key}", SERVER, title, SERVERS, one.title, (), **known))
    return tuple(found)
