"""Dimensions in which takes differ: a knob, an option of the model, the sentence, the voice, the seed or the model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from paretone.errors import SettingError
from paretone.models import catalogue
from paretone.models.own_voices import is_own, shown_name
from paretone.setting.knobs import Choice, Knob, Number, Switch, Values
from paretone.setting.library import TakeSummary
from paretone.setting.setting import Setting, UsedTechnique
from paretone.techniques import technique, techniques
from paretone_app.state.differences import model_title, value_text

Value = str | float | int | bool | None
"""``None`` for a technique that is not used."""
TEXT, VOICE, SEED, MODEL = "text", "voice", "seed", "model"
_TITLES = {TEXT: "Sentence", VOICE: "Voice", SEED: "Seed", MODEL: "Model"}
_LONGEST = 28
"""Letters of a sentence on an axis."""
_BETWEEN = {TEXT: "|", VOICE: ";", MODEL: ";"}
"""What separates values that are typed."""


@dataclass(frozen=True)
class Asked:
    """What a take is of."""

    text: str
    voice: str
    """The voice's id."""
    setting: Setting

    @classmethod
    def of(cls, take: TakeSummary) -> Asked:
        """What ``take`` is of."""
        return cls(take.text, take.voice, take.setting)


@dataclass(frozen=True)
class Dimension:
    """One of the two dimensions of a grid."""

    name: str
    """``text``, ``voice``, ``seed``, ``model``, ``option:steps`` or ``steps.steps``."""
    title: str
    technique: str = ""
    knob: Knob | None = None
    """Of a technique if that is given, else an option of models."""

    def value(self, asked: Asked) -> Value:
        """What ``asked`` has in this dimension."""
        setting = asked.setting
        if self.knob is None:
            fixed: dict[str, Value] = {TEXT: asked.text, VOICE: asked.voice, SEED: setting.seed, MODEL: setting.model}
            return fixed[self.name]
        if not self.technique:
            return setting.options.get(self.knob.name)
        used = setting.technique(self.technique)
        return None if used is None else used.knobs.get(self.knob.name, self.knob.default)

    def put(self, asked: Asked, value: Value) -> Asked:
        """The same with another value."""
        setting = asked.setting
        if self.name == TEXT:
            return replace(asked, text=str(value))
        if self.name == VOICE:
            return replace(asked, voice=str(value))
        if self.name == SEED:
            return replace(asked, setting=replace(setting, seed=int(value or 0)))
        if self.name == MODEL:
            return replace(
                asked, setting=replace(setting, model=str(value), options=_usual_options(str(value), setting))
            )
        assert self.knob is not None
        if not self.technique:
            return replace(asked, setting=replace(setting, options=setting.options.replace(**{self.knob.name: value})))
        if value is None:
            return replace(asked, setting=setting.without(self.technique))
        used = setting.technique(self.technique) or UsedTechnique(self.technique)
        # What was prepared for one value of a knob does not serve another one.
        entry = UsedTechnique(self.technique, used.knobs.replace(**{self.knob.name: value}))
        return replace(asked, setting=setting.with_technique(entry))

    def in_words(self, value: Value, whole: bool = False) -> str:
        """A value for people; a ``whole`` sentence, however long it is."""
        if value is None:
            return "off"
        if self.name == MODEL:
            return model_title(str(value))
        if self.name == VOICE:
            name = shown_name(str(value)) if is_own(str(value)) else str(value).rpartition("/")[2]
            return name[:1].upper() + name[1:]
        if self.name == TEXT and not whole and len(str(value)) > _LONGEST:
            return f"{str(value)[:_LONGEST].rstrip()}…"
        return str(value) if self.knob is None else value_text(self.knob, value)

    def read(self, words: str, named: Mapping[str, str] = {}) -> tuple[Value, ...]:
        """Values that the user typed, separated by ``;`` or spaces, sentences by ``|``, voices and models by ``;``;
        ``named`` are the voices or models that there are, by their names in lower case. Raises :class:`SettingError`
        with the one that is no value."""
        if self.name in _BETWEEN:
            parts = [one.strip() for one in words.split(_BETWEEN[self.name])]
        else:
            parts = words.replace(";", " ").split()
        return tuple(dict.fromkeys(self._read_one(one, named) for one in parts if one))

    def _read_one(self, word: str, named: Mapping[str, str]) -> Value:
        if self.name in (VOICE, MODEL):
            if word.casefold() not in named:
                there = ", ".join(dict.fromkeys(self.in_words(one) for one in named.values()))
                raise SettingError(f"There is no {self.title.lower()} “{word}”; there are {there or 'none'}.")
            return named[word.casefold()]
        if self.name == SEED:
            if not (word.isascii() and word.isdigit()) or len(word) > 15:
                raise SettingError(f"A seed is a whole number from 0 on, not “{word}”.")
            return int(word)
        if self.knob is None:
            return word
        if self.technique and word.casefold() == "off":
            return None
        if isinstance(self.knob, Switch):
            if word.casefold() not in ("on", "off"):
                raise SettingError(f"{self.knob.title} is on or off, not “{word}”.")
            return word.casefold() == "on"
        if isinstance(self.knob, Number):
            try:
                return self.knob.check(float(word.replace(",", ".").replace("−", "-")))
            except ValueError:
                raise SettingError(f"{self.knob.title} must be a number, not “{word}”.") from None
        return self.knob.check(word)


def _usual_options(model: str, setting: Setting) -> Values:
    """The options of another model, as they are there by default."""
    try:
        return setting.options if model == setting.model else catalogue.entry(model).options_with()
    except SettingError:
        return setting.options  # Takes outlive models.


_FIXED = tuple(Dimension(name, title) for name, title in _TITLES.items())


def dimensions(takes: Sequence[Asked], model: str) -> tuple[Dimension, ...]:
    """Dimensions for takes around one of ``model``: knobs and options that ``takes`` of that model have several values
    of, then sentence, voice, seed and model, then what else its model has."""
    own = [one for one in takes if one.setting.model == model]
    known = tuple(_knobs(model))
    varied = {one for one in known if _is_varied(one, own)}
    return (*(one for one in known if one in varied), *_FIXED, *(one for one in known if one not in varied))


def by_name(known: Iterable[Dimension], name: str) -> Dimension | None:
    """The one called ``name``."""
    return next((one for one in known if one.name == name), None)


def _knobs(model: str) -> Iterator[Dimension]:
    try:
        entry = catalogue.entry(model)
    except SettingError:
        return  # Takes outlive models.
    for each in techniques():
        if entry.family in each.families:
            for knob in each.knobs:
                if isinstance(knob, Number | Choice | Switch):
                    title = knob.title if len(each.knobs) == 1 else f"{each.title}: {knob.title.lower()}"
                    yield Dimension(f"{each.name}.{knob.name}", f"{title} {knob.symbol}".rstrip(), each.name, knob)
    for knob in entry.options:
        if isinstance(knob, Number | Choice | Switch):
            yield Dimension(f"option:{knob.name}", f"{knob.title} {knob.symbol}".rstrip(), "", knob)


def _is_varied(one: Dimension, takes: Sequence[Asked]) -> bool:
    """Whether ``takes`` have several values of a knob; whether a technique is used is a matter of its first knob."""
    # ``True`` and 1 are different values.
    values = {(type(value), value) for take in takes if (value := one.value(take)) is not None}
    first = bool(one.technique) and one.knob == technique(one.technique).knobs[0]
    return len(values) > 1 or (first and bool(values) and any(one.value(take) is None for take in takes))


def in_order(values: Iterable[Value]) -> tuple[Value, ...]:
    """Off first, then numbers from the least on; all else as it comes."""
    distinct = tuple(dict.fromkeys(values))
    numbers = sorted(one for one in distinct if isinstance(one, int | float) and not isinstance(one, bool))
    others = [one for one in distinct if one is not None and one not in numbers]
    return (*((None,) if None in distinct else ()), *numbers, *others)
