"""The form of a new study, without widgets: its knobs, goals and ranges, and the fields of the file."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

from paretone.errors import SettingError, StudyError
from paretone.measure.metrics import metric
from paretone.models import catalogue
from paretone.models.base import ModelInfo, Voice
from paretone.models.voices import is_own
from paretone.serving.records import Level, address, field_value
from paretone.setting.knobs import Choice, Knob, Number, Switch
from paretone.setting.plan import imported
from paretone.setting.setting import Setting
from paretone.studies.servers import CLONED
from paretone.studies.space import OFF, ON, USED
from paretone.techniques import technique
from paretone_app.features.registry import FEATURES
from paretone_app.numbers import grouped


@dataclass(frozen=True)
class StudyKind:
    """A kind of study whose settings follow from the model; no parameters to choose."""

    name: str
    title: str
    tip: str
    about: str
    """Explanation shown instead of the parameters."""
    proposal: str
    """Default title, with ``{model}``."""
    judges: tuple[str, ...]
    fields: Callable[[ModelInfo], Mapping[str, object] | None]
    """Fields of the study's file for the loaded model; ``None`` if it cannot be studied so."""
    missing: str
    """What to do if it cannot, as a sentence."""


@dataclass(frozen=True)
class OfferedKind:
    kind: StudyKind
    fields: Mapping[str, object] | None
    """Fields of the study's file; ``None`` if the model cannot be studied so."""


def offered_kinds(info: ModelInfo | None) -> tuple[OfferedKind, ...]:
    kinds: tuple[StudyKind, ...] = tuple(imported(one.study) for one in FEATURES if one.study)
    return tuple(OfferedKind(one, one.fields(info) if info is not None else None) for one in kinds)


MOST_VALUES = 10_000
KINDS = {
    "at_most": "at most",
    "at_least": "at least",
    "above_baseline": "above the baseline, at most by",
    "below_baseline": "below the baseline, at most by",
}
"""Kinds of bounds on a metric: name in a study's file, and wording."""
_NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
_DOTS = r"\s*(?:\.\.|…)\s*"
_RANGE = re.compile(rf"({_NUMBER}){_DOTS}({_NUMBER})(?:\s*by\s*({_NUMBER}))?(\s*log)?")
_YES, _NO = ("yes", "true", "on"), ("no", "false")


@dataclass(frozen=True)
class Varied:
    technique: str
    """Its name, or ``""`` for an option of the model."""
    knob: str
    """``""`` for only the presence of the technique."""
    text: str = ""
    without: bool = False
    """Whether to include settings without the technique."""


@dataclass(frozen=True)
class Server:
    url: str
    loads: str
    """One after another, clients at once or requests a second: 1 8 0.5/s."""
    fields: str
    """Of each request: ``speed = 1.0; num_inference_steps = 8, 16``, of which those with several values are varied."""
    token: bool
    """Whether it needs a token, which is not part of the study."""
    clones: bool = False
    """Whether the recording of each voice is sent."""


@dataclass(frozen=True)
class Bound:
    metric: str
    kind: str
    """A key of :data:`KINDS`."""
    bound: float


@dataclass(frozen=True)
class Goals:
    objectives: tuple[str, ...]
    bounds: tuple[Bound, ...]
    trials: int


@dataclass(frozen=True)
class StudyForm:
    title: str
    model: str
    sentences: str
    """``harvard``, ``unseen``, ``demo``, or the path of a text file or of an evaluation set's list."""
    count: int
    """Number of sentences from the start; 0 for all."""
    voices: tuple[Voice, ...]
    seeds: str
    rounds: int
    judges: tuple[str, ...]
    options: Mapping[str, object]
    """The model's options that differ from its defaults."""
    varied: tuple[Varied, ...]
    selected: Setting | None = None
    """A further setting to compare."""
    goals: Goals | None = None
    """``None`` to try every combination."""
    servers: tuple[Server, ...] = ()
    offered: OfferedKind | None = None
    """A kind of study declared by a feature; nothing else is varied then."""
    folder: str = ""
    """Folder of the model's checkpoint; ``""`` for the default one."""
    variant: str = ""
    """Its architecture, if the checkpoint does not specify it."""
    device: str = ""
    """``""`` for the best one."""
    vocoder: str = ""
    """Folder of its vocoder; ``""`` for the default one."""
    evaluates: bool = False
    """Whether ``sentences`` is the list of an evaluation set, which has its own voices."""
    recordings: str = ""
    """Folder of LibriSpeech's recordings, for its list."""


def definition(form: StudyForm) -> dict[str, object]:
    """The study described by ``form``. Raises :class:`PlainError` that names the wrong field."""
    if not form.title.strip():
        raise StudyError("The study needs a title.")
    if not form.voices and not form.evaluates:
        raise StudyError("Tick at least one voice.")
    if not form.sentences:
        raise StudyError("Choose the list." if form.evaluates else "Choose a text file with one sentence per line.")
    judges = list(form.judges)
    if form.goals is not None:
        figures = (*form.goals.objectives, *(one.metric for one in form.goals.bounds))
        judges += filter(None, (metric(name).judge for name in figures))
    if form.offered is not None:
        judges += form.offered.kind.judges
    own = {one: {"audio": one.audio, "transcript": one.transcript} for one in form.voices if is_own(one.id)}
    voices = [own.get(one, one.id) for one in form.voices]
    fields = {
        "title": form.title.strip(),
        **{name: getattr(form, name) for name in ("model", "folder", "variant", "vocoder", "device")},
        "manifest" if form.evaluates else "sentences": form.sentences,
        "manifest_audio": form.recordings if form.evaluates else "",
        "count": form.count,
        "voices": voices if not form.evaluates else [],
        "seeds": seeds_of(form.seeds),
        "rounds": form.rounds if form.rounds > 1 else 0,
        "judges": list(dict.fromkeys(judges)),
        "options": dict(form.options),
    }
    made: dict[str, object] = {name: value for name, value in fields.items() if value}
    if form.offered is not None:
        return made | dict(form.offered.fields or {})
    axes = _axes(form)
    if form.goals is not None:
        made["search"] = _search(form.goals, axes)
    elif axes:
        made["grid"] = axes
    if form.selected is not None:
        made["setting"] = [_listed(form.selected, form.options)]
    if form.servers:
        made["server"] = [_server(one) for one in form.servers]
    if not axes and form.goals is not None:
        raise StudyError("The search varies nothing: add an option or a technique.")
    if not (axes or form.servers) and form.selected is None:
        raise StudyError("The study compares nothing: add an option or a technique.")
    return made


def seeds_of(text: str) -> list[int] | str:
    """Parse typed seeds; ``paper`` stands for the five of a published evaluation."""
    if text.strip().casefold() == "paper":
        return "paper"
    try:
        found = [seed for part in _parts(text) for seed in _whole_numbers(part)]
    except (ValueError, InvalidOperation):
        found = []
    if not found or min(found) < 0:
        raise StudyError(f"Seeds must be whole numbers from 0 (0, 1, 2 or 0..4) or “paper”, not “{text.strip()}”.")
    return found


def values_of(knob: Knob, text: str, searching: bool) -> list[object] | dict[str, object]:
    """Parse typed values of ``knob``; low and high for the range of a search. Raises :class:`StudyError`."""
    parts = _parts(text)
    if not parts:
        raise StudyError(f"{knob.title} needs values: {example(knob)}.")
    found: list[object] = []
    for part in parts:
        match = _RANGE.fullmatch(part)
        if match is None or not isinstance(knob, Number):
            found.append(_value(knob, part))
        elif float(match[1]) >= float(match[2]) or float(match[3] or 1) <= 0:
            raise StudyError(f"{knob.title}: a range must increase, with a step above 0; “{part}” does not.")
        elif searching:
            if len(parts) > 1:
                raise StudyError(f"{knob.title}: a search takes either one range or single values, not both.")
            if match[4] and (match[3] or float(match[1]) <= 0):
                raise StudyError(f"{knob.title}: a logarithmic range begins above 0 and has no step.")
            low, high = (_checked(knob, float(match[index])) for index in (1, 2))
            drawn: dict[str, object] = {"low": low, "high": high}
            if match[3]:
                drawn["step"] = int(float(match[3])) if knob.whole else float(match[3])
            return drawn | {"log": True} if match[4] else drawn
        else:
            found += _expanded(knob, match)
    if len(set(found)) < len(found):
        raise StudyError(f"{knob.title} has a value twice.")
    return found


def example(knob: Knob) -> str:
    if isinstance(knob, Switch):
        return "yes, no"
    if isinstance(knob, Choice):
        return ", ".join(knob.titles or knob.values)
    if isinstance(knob, Number):
        further = min(knob.maximum, knob.default + 4 * knob.step)
        return f"{knob.default:g}, … or a range such as {knob.default:g}..{further:g}"
    return "words"


def own_options(setting: Setting, of_all: Mapping[str, object] = {}) -> dict[str, object]:
    """Options of ``setting`` that differ from ``of_all`` and, for others, from the model's defaults."""
    usual = {**catalogue.entry(setting.model).options_with(), **of_all}
    return {name: value for name, value in setting.options.items() if usual[name] != value}


def file_name(title: str) -> str:
    return (re.sub(r"[^\w]+", "-", title.casefold()).strip("-_")[:60] or "study") + ".toml"


def _server(typed: Server) -> dict[str, object]:
    loads = Level.typed(typed.loads)
    made: dict[str, Any] = {
        "url": address(typed.url.strip()),
        "clients": [load.clients for load in loads if load.clients],
        "rate": [load.rate for load in loads if load.rate],
        "token": typed.token,
        CLONED: typed.clones,
        "fields": {},
        "vary": {},
    }
    for part in filter(None, map(str.strip, typed.fields.split(";"))):
        name, there, text = (one.strip() for one in part.partition("="))
        values = [field_value(one) for one in _parts(text)]
        if not there or not name or not values:
            raise StudyError(f"Fields of a request are typed as speed = 1.0; steps = 8, 16; not as “{part}”.")
        made["vary" if len(values) > 1 else "fields"][name] = values if len(values) > 1 else values[0]
    return {name: value for name, value in made.items() if value or name == "url"}


def _axes(form: StudyForm) -> dict[str, object]:
    """The grid, or the space of a search."""
    made: dict[str, object] = {}
    tables: dict[str, dict[str, object]] = {}
    seen = set()
    options = {line.knob for line in form.varied if not line.technique}
    for line in form.varied:
        knob = _knob(form.model, line)
        name = knob.title if knob else technique(line.technique).title
        if (line.technique, line.knob) in seen:
            raise StudyError(f"{name} is varied twice; put all its values in one line.")
        seen.add((line.technique, line.knob))
        values = values_of(knob, line.text, form.goals is not None) if knob else [ON]
        if not line.technique:
            made[line.knob] = values
            continue
        found: dict[str, object] = {line.knob or USED: values}
        if line.without and isinstance(values, list):
            found = {line.knob or USED: [OFF, *values]}
        elif line.without:
            found[USED] = [OFF, ON]
        if line.technique in options:
            # An option has the technique's name: write the knobs with full names.
            made |= {f"{line.technique}.{name}": one for name, one in found.items()}
        else:
            made[line.technique] = tables.setdefault(line.technique, {})
            tables[line.technique].update(found)
    return made


def _knob(model: str, line: Varied) -> Knob | None:
    if not line.knob:
        return None
    knobs = technique(line.technique).knobs if line.technique else catalogue.entry(model).options
    return next(knob for knob in knobs if knob.name == line.knob)


def _search(goals: Goals, space: Mapping[str, object]) -> dict[str, object]:
    if not goals.objectives:
        raise StudyError("The search has no goal: choose what to optimise.")
    if len(set(goals.objectives)) < len(goals.objectives):
        raise StudyError("Both goals are the same; choose another second goal, or none.")
    made: dict[str, object] = {"trials": goals.trials, "objectives": list(goals.objectives), "space": dict(space)}
    if goals.bounds:
        made["constraint"] = [{"metric": one.metric, one.kind: one.bound} for one in goals.bounds]
    return made


def _listed(setting: Setting, of_all: Mapping[str, object]) -> dict[str, object]:
    """``setting`` as listed in a study; options only where they differ from the study's, ``of_all``."""
    options = own_options(setting, of_all)
    techniques = {one.technique: dict(one.knobs) for one in setting.techniques}
    return {"name": "as in Setup", **({"options": options} if options else {}), "techniques": techniques}


def _parts(text: str) -> list[str]:
    return [part.strip() for part in text.replace(";", ",").split(",") if part.strip()]


def _value(knob: Knob, text: str) -> object:
    if isinstance(knob, Switch):
        if text.casefold() not in (*_YES, *_NO):
            raise StudyError(f"{knob.title} must be yes or no, not “{text}”.")
        return text.casefold() in _YES
    if isinstance(knob, Choice):
        titles = dict(zip((one.casefold() for one in knob.titles), knob.values, strict=False))
        return _checked(knob, titles.get(text.casefold(), text))
    try:
        return _checked(knob, float(text) if isinstance(knob, Number) else text)
    except ValueError:
        raise StudyError(f"{knob.title} must be numbers, such as {example(knob)}; not “{text}”.") from None


def _checked(knob: Knob, value: object) -> object:
    try:
        return knob.check(value)
    except SettingError as error:
        raise StudyError(str(error)) from error


def _expanded(knob: Number, match: re.Match) -> list[object]:
    """All values of a range, in steps of 1 or of the typed step."""
    if match[4]:
        raise StudyError(f"{knob.title}: “log” is for searches only; type the values to try.")
    if not match[3] and not knob.whole:
        raise StudyError(f"{knob.title}: give the step, as in {match[1]}..{match[2]} by {knob.step:g}.")
    # Decimal, so that 0.1 is exact.
    low, high, step = Decimal(match[1]), Decimal(match[2]), Decimal(match[3] or 1)
    count = int((high - low) / step) + 1
    if count > MOST_VALUES:
        raise StudyError(f"{knob.title}: {grouped(count)} values are too many; choose a larger step.")
    return [_checked(knob, float(low + number * step)) for number in range(count)]


def _whole_numbers(part: str) -> list[int]:
    first, *ends = map(int, re.split(_DOTS, part))
    if not ends:
        return [first]
    (last,) = ends
    if last < first:
        raise ValueError(part)
    if last - first >= MOST_VALUES:
        raise StudyError(f"Seeds: {grouped(last - first + 1)} are too many; give {grouped(MOST_VALUES)} or fewer.")
    return list(range(first, last + 1))


@dataclass(frozen=True)
class Span:
    technique: str
    """Its name, or ``""`` for an option of the model."""
    knob: str
    values: tuple[float, ...]
    """Known values, ascending."""
    without: bool = False
    """Whether to include settings without the technique."""

    def varied(self, searching: bool) -> Varied:
        """The line of the form: the whole range for a search, else single values."""
        texts = [f"{one:.6g}" for one in self.values]
        as_range = searching and self.values[0] < self.values[-1]
        text = f"{texts[0]}..{texts[-1]}" if as_range else ", ".join(texts)
        return Varied(self.technique, self.knob, text, self.without)


@dataclass(frozen=True)
class Within:
    model: str
    spans: tuple[Span, ...]
    bounds: tuple[Bound, ...]
