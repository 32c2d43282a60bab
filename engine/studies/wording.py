"""How settings of a study are called. Torch-free."""

from __future__ import annotations

from engine.knobs import Choice, Knob
from engine.models import catalogue
from engine.setting import Engaged, Setting
from engine.studies.results import SettingResult
from engine.techniques import technique


def setting_title(one: SettingResult) -> str:
    """The name that a study gives it, or else what it differs in from the model's defaults and its techniques."""
    return one.name if one.name and one.origin != "baseline" else described(one.setting)


def described(setting: Setting) -> str:
    """For example ``baseline, guidance 1`` or ``Step pruning 7, DiTReducio δ 0.1``."""
    entry = catalogue.entry(setting.model)
    usual = entry.options_with()
    options = [
        f"{knob.title.lower()} {_plain(setting.options[knob.name])}"
        for knob in entry.options
        if knob.name in setting.options and setting.options[knob.name] != usual[knob.name]
    ]
    techniques = [_technique(one) for one in setting.techniques]
    return ", ".join([*(techniques or ["baseline"]), *options])


def _technique(one: Engaged) -> str:
    """A technique with its first knob, and all others that are not at their defaults."""
    declared = technique(one.technique)
    parts = [
        _knob(knob, one.knobs[knob.name], first=index == 0)
        for index, knob in enumerate(declared.knobs)
        if knob.name in one.knobs and (index == 0 or one.knobs[knob.name] != knob.default)
    ]
    return " ".join([declared.title, *parts])


def _knob(knob: Knob, value: object, first: bool) -> str:
    if knob.symbol:
        return f"{knob.symbol} {_plain(value)}"
    return _plain(value) if first or isinstance(knob, Choice) else f"{knob.title.lower()} {_plain(value)}"


def _plain(value: object) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
