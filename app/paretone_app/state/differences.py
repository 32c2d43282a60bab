"""Differences between takes, and their wording."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from paretone.errors import SettingError
from paretone.measure.fidelity import with_baseline_metrics
from paretone.models import catalogue
from paretone.models.base import (
    FLOW,
    MASKED,
    DraftWeights,
    FeatureDraftWeights,
    IntervalWeights,
    TrainedWeights,
    Voice,
    WeightSet,
)
from paretone.models.declaration import Model
from paretone.models.voices import shown_name
from paretone.paths import resource
from paretone.setting.compatibility import are_others, checkpoint_text, is_replaced
from paretone.setting.knobs import Choice, Knob, Number, Switch
from paretone.setting.library import TakeSummary
from paretone.setting.setting import Difference, Setting, UsedTechnique
from paretone.setting.take import Measurements, Take
from paretone.techniques import changed_options, find, wording
from paretone_app.numbers import fixed, general, localised, times


def weights_title(one: TrainedWeights) -> str:
    """Label of weights, with their origin (shipped, or the file name)."""
    path = Path(one.path)
    whose = "shipped" if path.is_relative_to(resource("models")) else path.stem
    if isinstance(one, WeightSet):
        return f"w = {fixed(one.weight, 2)}, {one.method} ({whose})"
    if isinstance(one, IntervalWeights):
        guidance = ", ".join(f"{name} {general(value, 3)}" for name, value in one.guidance.items())
        return f"{guidance}, {one.method} ({whose})"
    if isinstance(one, DraftWeights):
        return f"Draft with {len(one.retained)} layers ({whose})"
    if isinstance(one, FeatureDraftWeights):
        return f"Draft on features ({whose})"
    learnt = f"{general(one.minutes, 3)} min of training" if one.minutes else "not retrained"
    return f"Student with {one.depth} layers, {learnt} ({whose})"


STREAMING_MEANING = (
    "How far streamed audio is from the same tokens decoded at once, in decibels of its level; “exact” where the "
    "decoder streams exactly, “–” for models without tokens"
)


_SAME_SPEED = 1.03
"""Two takes of one setting differ in time by up to about 3 % on a quiet machine: not a difference of settings."""


def speed_of_b(ratio: float) -> str:
    """``B is 1.85× as fast as A``, ``slower than A`` or ``about as fast as A``; ``ratio``: time of A over time of B."""
    if 1 / _SAME_SPEED < ratio < _SAME_SPEED:
        return "B is about as fast as A"
    return f"B is {times(ratio)} as fast as A" if ratio >= 1 else f"B is {times(1 / ratio)} slower than A"


def technique_text(setting: Setting) -> str:
    """The techniques in use, such as ``Step pruning: 7 steps + Precision: bfloat16``; ``baseline`` without."""
    parts = []
    for one in setting.techniques:
        declared, knob, value = find(one.technique), _first_knob(one), first_value(one)
        title = declared.title if declared else one.technique
        text = title + (f"{' ' if knob.symbol else ': '}{value}" if knob and value else "")
        parts.append(", ".join((text, *_unusual_choices(one))))
    return " + ".join(parts) or "baseline"


def label_of(take: Take | TakeSummary) -> str:
    """The take's label; a label that names the techniques is rebuilt in the current wording and number format."""
    made = technique_text(take.setting)
    return made if _spelled(take.label) == _spelled(made) else localised(take.label)


def within_sentence(title: str) -> str:
    """A title in lower case for use within a sentence, except abbreviations."""
    return title if title[:2].isupper() else title[:1].lower() + title[1:]


def _spelled(label: str) -> str:
    """A label without the signs that differ between languages and versions."""
    return label.replace(" = ", " ").replace(",", ".")


def _unusual_choices(entry: UsedTechnique) -> Iterator[str]:
    """Choices that differ from their defaults, without the bracketed parts of titles."""
    declared = find(entry.technique)
    for knob in declared.knobs[1:] if declared else ():
        value = entry.knobs.get(knob.name, knob.default)
        if isinstance(knob, Choice) and knob.titles and value != knob.default and value in knob.values:
            yield within_sentence(_short_title(knob, value))


def _short_title(knob: Choice, value: object) -> str:
    """The title of a knob's value, without the bracketed part."""
    if value not in knob.values or not knob.titles:
        return str(value)
    return knob.titles[knob.values.index(str(value))].partition(" (")[0]


def _first_knob(entry: UsedTechnique) -> Knob | None:
    """The first knob of a technique; ``None`` if it has none or the technique no longer exists."""
    declared = find(entry.technique)
    return next(iter(declared.knobs), None) if declared else None


def first_value(entry: UsedTechnique) -> str:
    """The first knob's value with symbol or unit, such as ``δ = 0.1`` or ``7 steps``; ``""`` without one."""
    knob = _first_knob(entry)
    if knob is None or knob.name not in entry.knobs:
        return ""
    value = entry.knobs[knob.name]
    if isinstance(knob, Choice):
        return _short_title(knob, value)
    if isinstance(knob, Number) and (words := knob.in_words(value)):
        return words
    shown = general(value)
    return f"{knob.symbol} = {shown}" if knob.symbol else f"{shown} {knob.unit or knob.title.lower()}"


def differences(left: Take | TakeSummary, right: Take | TakeSummary) -> tuple[Difference, ...]:
    """Intended differences of two takes: text, voice, setting; and weights, if known and of one model."""
    spoken = (
        Difference(what, shown(getattr(left, what)), shown(getattr(right, what)), False)
        for what, shown in (("text", str), ("voice", shown_name))
        if getattr(left, what) != getattr(right, what)
    )
    weights: tuple[Difference, ...] = ()
    if left.setting.model == right.setting.model and are_others(left.checkpoint, right.checkpoint):
        shown = checkpoint_text(left.checkpoint), checkpoint_text(right.checkpoint)
        weights = (Difference("weights", *shown, False),)
    both, texts = setting_differences(left.setting, right.setting), f"{left.text} {right.text}"
    if not _are_said(texts, *(one.setting.options.get("pronunciations", "") for one in (left, right))):
        both = tuple(one for one in both if one.what != "pronunciations")
    return (*spoken, *weights, *both)


def _are_said(texts: str, *lexicons: object) -> bool:
    """Whether a word whose pronunciation differs between ``lexicons`` is in ``texts``."""
    one, other = (set(str(lexicon).casefold().split("; ")) for lexicon in lexicons)
    words = "|".join(re.escape(entry.partition(" = ")[0]) for entry in one ^ other if entry)
    return re.search(rf"\b({words})\b", texts.replace("’", "'").casefold()) is not None


def other_weights(made_with: str, loaded: str) -> str:
    """Phrase saying that something was made with other weights than those loaded (both fingerprints), or ``""``."""
    if not are_others(made_with, loaded):
        return ""
    return f"was made with other weights, {checkpoint_text(made_with)}, than those loaded, {checkpoint_text(loaded)}"


def caution_on_repeating(take: Take | TakeSummary, voices: Sequence[Voice], loaded: str = "") -> str:
    """What will differ if ``take`` is made again with these ``voices`` and weights: sentences, or ``""``."""
    notes = []
    if is_replaced(take.setting.model, take.checkpoint, take.voice):
        notes.append("The take was made with earlier weights of this model: now it will sound different.")
    elif others := other_weights(take.checkpoint, loaded):
        notes.append(f"The take {others}: now it will sound different.")
    if take.voice not in {one.id for one in voices}:
        notes.append(f"The voice {shown_name(take.voice)!r} of the take is not there; another one is selected.")
    return " ".join(notes)


def setting_differences(left: Setting, right: Setting) -> tuple[Difference, ...]:
    """Differences of two settings, with the value of each technique; between models, only chosen options."""
    found = left.differences(right)
    if left.model != right.model:
        of_all = "model", "seed"
        found = tuple(one for one in found if one.technique or one.what in of_all or _is_chosen(one.what, left, right))
    return tuple(_spelt_out(one, left, right) for one in found)


def _is_chosen(option: str, left: Setting, right: Setting) -> bool:
    """Whether both models have ``option`` and one of the settings differs from its model's default."""
    try:
        usual = [(one, catalogue.entry(one.model).options_with()) for one in (left, right)]
    except SettingError:
        return True
    both = all(option in one.options for one, _ in usual)
    return both and any(one.options[option] != own.get(option) for one, own in usual)


def _spelt_out(difference: Difference, left: Setting, right: Setting) -> Difference:
    """Replace ``on`` by the technique's first value."""
    used = left.technique(difference.what) or right.technique(difference.what) if difference.technique else None
    value = (first_value(used) if used is not None else "") or "on"
    one, other = (value if side == "on" else side for side in (difference.left, difference.right))
    return replace(difference, left=one, right=other)


def difference_words(one: Difference) -> tuple[str, str, str]:
    if one.technique:
        return wording(one), one.left, one.right
    if one.what == "model":
        return "Model", model_title(one.left), model_title(one.right)
    known = [knob for entry in catalogue.models() for knob in entry.options if knob.name == one.what]
    if not known:
        return one.what.capitalize(), one.left, one.right
    return known[0].title, _option_text(known, one.left), _option_text(known, one.right)


def setting_text(setting: Setting) -> str:
    """A setting in one line: techniques, changed options, and the seed."""
    techniques = technique_text(setting) if setting.techniques else "Baseline"
    try:
        entry = catalogue.entry(setting.model)
    except SettingError:
        return f"{techniques}, seed {setting.seed}"
    return ", ".join((techniques, *option_words(entry, changed_options(setting)), f"seed {setting.seed}"))


def option_words(entry: Model, options: Mapping[str, object]) -> tuple[str, ...]:
    """The ``options`` that the model has, each with its title."""
    return tuple(
        f"{knob.title} {value_text(knob, options[knob.name])}" for knob in entry.options if knob.name in options
    )


def value_text(knob: Knob, value: object) -> str:
    """A knob's value for display: localised number with its unit, title of a choice, ``on`` or ``off``."""
    text = _option_text([knob], general(value) if isinstance(value, float) else str(value))
    return f"{text}{'' if knob.unit == '×' else ' '}{knob.unit}".rstrip()


def model_title(model: str) -> str:
    try:
        return catalogue.entry(model).title
    except SettingError:
        return model


def _option_text(known: Sequence[Knob], value: str) -> str:
    """The value of an option declared in ``known``, for display."""
    if value == "absent":
        defaults = [str(knob.default) for knob in known if knob.later]
        value = [*defaults, "not an option of the model"][0]
    for knob in known:
        if isinstance(knob, Choice) and knob.titles and value in knob.values:
            return knob.titles[knob.values.index(value)]
        if isinstance(knob, Switch):
            return {"True": "on", "False": "off"}.get(value, value)
    return value or "none"


def family_of(setting: Setting) -> str:
    try:
        return catalogue.entry(setting.model).family
    except SettingError:
        return ""


def keeps_timing(setting: Setting) -> bool:
    """Whether takes of ``setting`` keep their timing under skipping, so that switching A/B stays in sync."""
    return family_of(setting) in (FLOW, MASKED)


def measured_against(take: Take, baseline: Take | None) -> Take:
    """``take`` with its metrics against ``baseline``; unchanged if text, timing or noise differ."""
    if baseline is None:
        return take
    try:
        return with_baseline_metrics(baseline, take)
    except SettingError:
        return take


def streaming_text(measured: Measurements) -> str:
    """Distance of streamed audio from audio decoded at once, for display."""
    if measured.streaming_difference is not None:
        return f"{fixed(measured.streaming_difference, 0)} dB"
    return "exact" if measured.tokens else "–"


def prepared_entry(setting: Setting) -> UsedTechnique | None:
    """The technique of ``setting`` that needs a calibration, if any."""
    declared = ((one, find(one.technique)) for one in setting.techniques)
    return next((one for one, found in declared if found is not None and found.prepared_by == "calibration"), None)
