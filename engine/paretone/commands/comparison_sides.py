"""The two sides of ``paretone compare``: a profile, the other side without techniques, or options that are typed."""

from __future__ import annotations

import argparse
from dataclasses import dataclass, replace
from pathlib import Path

from paretone.commands import arguments
from paretone.commands.technique_args import from_files, number, typed, typed_techniques, with_file, with_weights
from paretone.errors import SettingError
from paretone.models import catalogue
from paretone.models.base import SpeechModel
from paretone.setting.knobs import checked
from paretone.setting.profile import Profile
from paretone.setting.setting import Artefact, Setting, checked_seed
from paretone.techniques import compatibility_of, foreseen


@dataclass
class Side:
    """One side of a comparison."""

    title: str
    setting: Setting
    variant: str = ""
    files: tuple[tuple[str, str], ...] = ()
    """Artefacts that are given as files: the option, and the file."""
    profile: Profile | None = None
    model: SpeechModel | None = None
    artefacts: tuple[Artefact, ...] = ()


def sides_of(options: argparse.Namespace) -> tuple[Side, Side]:
    """The two sides that ``options`` describe. Raises :class:`PlainError`."""
    texts = options.a, options.b
    if texts == ("baseline", "baseline"):
        raise SettingError("Both sides are 'baseline'; give a profile or options for one of them.")
    if options.a == "baseline":
        second = _side(options.b, options)
        sides = _baseline(second), second
    else:
        first = _side(options.a, options)
        sides = first, _baseline(first) if options.b == "baseline" else _side(options.b, options)
    if sides[0].files == sides[1].files:
        refuse_equal(sides)
    return sides


def refuse_equal(sides: tuple[Side, Side]) -> None:
    """Raise :class:`SettingError` if both sides are the same setting of the same weights with the same seed."""
    one, two = sides
    if (one.setting, one.variant) != (two.setting, two.variant):
        return
    if "baseline" not in (one.title, two.title):
        raise SettingError(
            f"{one.title!r} and {two.title!r} are the same setting with the same seed; change one of them."
        )
    given = two if one.title == "baseline" else one
    entry = catalogue.entry(given.setting.model)
    usual = entry.options_with()
    changed = [f"{name}={value}" for name, value in usual.items() if given.setting.options[name] != value]
    instead = f"write the other side out, such as {','.join(changed)!r}" if changed else "name a technique"
    raise SettingError(
        f"Both sides are the same setting: 'baseline' is the other side without techniques, and {given.title!r} names "
        f"none; {instead}."
    )


def same_but_for_seed(sides: tuple[Side, Side]) -> str:
    """That the sides differ in their seeds only, as a sentence, or ``""``."""
    one, two = sides
    if one.variant != two.variant or replace(one.setting, seed=two.setting.seed) != two.setting:
        return ""
    return (
        f"Both sides are the same setting with different seeds ({one.setting.seed} and {two.setting.seed}): only their "
        "noise differs."
    )


def _baseline(other: Side) -> Side:
    return replace(other, title="baseline", setting=other.setting.baseline, profile=None, files=())


def _side(text: str, options: argparse.Namespace) -> Side:
    """A side from a profile's path, or from options such as ``steps=16,guidance=1.5``."""
    if not text.strip(" ,"):
        raise SettingError(
            "A side of the comparison is empty; give a profile (FILE.json), 'baseline', or options such as steps=16."
        )
    if Path(text).is_file() or (text.endswith(".json") and "=" not in text):
        profile = Profile.load(text)
        return Side(Path(text).name, profile.setting, options.variant or profile.named_variant, profile=profile)
    return typed_side(text, options.model or arguments.DEFAULT_MODEL, options.variant)


def typed_side(text: str, model: str, variant: str = "") -> Side:
    """A side from options such as ``steps=16,guidance=1.5,technique=NAME``, of ``model`` unless they name another.
    Raises :class:`PlainError`."""
    given: dict[str, str] = {}
    techniques: list[str] = []
    for part in filter(None, text.split(",")):
        name, found, value = part.partition("=")
        if not found:
            raise SettingError(
                f"{part!r} is not a side of a comparison; give a profile (FILE.json), 'baseline', or options such as "
                "steps=16."
            )
        name = name.strip()
        if name == "technique":
            techniques.append(value)
        elif name in given:
            raise SettingError(f"{name!r} is given twice; give each option of a side once.")
        else:
            given[name] = value.strip()
    model = given.pop("model", model)
    seed = checked_seed(number(given.pop("seed", "0"), "seed"))
    files = tuple((one.option, given.pop(one.option)) for _, one in from_files() if one.option in given)
    for option, path in files:
        if not path:
            raise SettingError(f"{option}= names no file; write its path, or leave {option} out.")
    entry = catalogue.entry(model)
    known = {knob.name: knob for knob in entry.options}
    values = {name: typed(known[name], value) if name in known else value for name, value in given.items()}
    setting = Setting(model, checked(entry.options, entry.options_with(**values), entry.title), seed=seed)
    for one in typed_techniques(techniques):
        setting = setting.with_technique(one)
    foreseen(setting)
    return Side(text, setting, variant, files)


def prepare(side: Side, model: SpeechModel) -> None:
    """Give a side its model and tables, checked against each other."""
    side.model = model
    if side.profile is not None:
        fixed = compatibility_of(model.info, side.setting) if side.profile.artefacts else None
        side.profile.check(model.info, fixed)
        side.artefacts = side.profile.artefacts
        return
    side.setting = with_weights(side.setting, model.info)
    for option, path in side.files:
        side.setting, found = with_file(side.setting, model, option, path)
        side.artefacts = (*side.artefacts, *found)
