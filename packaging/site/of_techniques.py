"""What the pages of techniques take from their declarations: facts, knobs, and what each combines with.

Everything is computed from the registry, so a technique that is added, or changed, has pages that are right.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from markup import bullets, escaped, table

from paretone.models import catalogue
from paretone.models.declaration import Model
from paretone.setting.knobs import Choice, Knob, Number, Switch, Text
from paretone.setting.setting import Setting, UsedTechnique
from paretone.techniques import conflict
from paretone.techniques.base import Technique
from paretone.techniques.registry import applying_to, technique, techniques
from paretone.views import named_view

_PAGES = Path(__file__).resolve().parents[2] / "resources" / "docs" / "techniques"
_PREPARED = {
    "calibration": "yes: a calibration or search that runs without training",
    "training": "yes: weights that are trained",
    "": "nothing",
}
_ARXIV = re.compile(r"arXiv (\d{4}\.\d{4,5})")
_NUMBER = re.compile(r"(?<![\w./])(\d{4}\.\d{5})(?!\w)")
_PLACE = re.compile(r"\b((?:github\.com|pytorch\.org)/[\w./-]+)")


def facts(name: str) -> str:
    """What the technique declares of itself: models, preparation, source."""
    one = technique(name)
    rows = [
        ("Models", ", ".join(escaped(entry.title) + " (bundled)" * entry.bundled for entry in _models(one))),
        ("Name on the command line", f"`{one.name}`"),
        ("Has to be prepared", _PREPARED[one.prepared_by]),
        ("Source", _source(one)),
    ]
    if one.experimental:
        rows.append(("Status", "an experiment: nobody has published it for such models"))
    if one.views:
        rows.append(("Views", ", ".join(f"`paretone view {named_view(module).name}`" for module in one.views)))
    if one.benches:
        rows.append(("Benches", ", ".join(f"`paretone bench {bench}`" for bench, _ in one.benches)))
    return f"{escaped(one.summary)}\n\n{table(('', ''), rows)}"


def knobs(name: str) -> str:
    return knob_table(technique(name).knobs) or "It has no knobs: it is used or not."


def knob_table(declared: tuple[Knob, ...]) -> str:
    """Knobs with their values and meaning; ``""`` if there are none."""
    if not declared:
        return ""
    rows = [
        (
            f"`{one.name}`",
            escaped(f"{one.title} {one.symbol}".strip()),
            values(one),
            _shown(one, one.default),
            escaped(one.meaning),
        )
        for one in declared
    ]
    return table(("knob", "in the window", "values", "default", "meaning"), rows)


def values(knob: Knob) -> str:
    """What a knob can be set to."""
    if isinstance(knob, Switch):
        return "`on`, `off`"
    if isinstance(knob, Choice):
        return ", ".join(
            f"`{value}` ({escaped(title)})" if title and title != value else f"`{value}`"
            for value, title in zip(knob.values, knob.titles or knob.values, strict=True)
        )
    if isinstance(knob, Number):
        unit = f" {escaped(knob.unit)}" if knob.unit else ""
        low, high = (None if abs(bound) >= 1e9 else bound for bound in (knob.minimum, knob.maximum))
        whole = "whole number" if knob.whole else "number"
        if low is None and high is None:
            return whole + unit
        if high is None:
            return f"{whole} from {low:g}{unit}"
        return f"{low:g} to {high:g}{unit}" if low is not None else f"{whole} up to {high:g}{unit}"
    return f"text of up to {knob.longest} characters" if isinstance(knob, Text) else "any"


def combinations(name: str) -> str:
    """Which techniques it can be used with, and why not with the others, for one model of each family that it is
    for. All have their default knobs."""
    one = technique(name)
    parts = []
    models = _models(one)
    for family in dict.fromkeys(entry.family for entry in models):
        entry = next(each for each in models if each.family == family)
        good, bad = _pairs(one, entry)
        heading = f"On {escaped(entry.title)}, with default knobs, it combines with: "
        parts.append(heading + (", ".join(_link(each) for each in good) or "nothing else") + ".")
        if bad:
            parts.append("Not with:\n\n" + bullets(f"{_link(each)}: {escaped(reason)}" for each, reason in bad))
    return "\n\n".join(parts)


def all_techniques(_: str = "") -> str:
    rows = [
        (_link(one), ", ".join(one.families), escaped(one.benefit or one.summary), _source(one))
        for one in techniques()
        if _has_page(one)
    ]
    return table(("technique", "model families", "what it is for", "source"), rows)


@cache
def _models(one: Technique) -> tuple[Model, ...]:
    """The models of the catalogue that can use it, bundled ones first."""
    found = [entry for entry in catalogue.models() if one in applying_to(entry.family, entry.options, entry.mel_flow)]
    return tuple(sorted(found, key=lambda entry: not entry.bundled))


def _pairs(one: Technique, entry: Model) -> tuple[list[Technique], list[tuple[Technique, str]]]:
    """The other techniques for the model: those that it can be used with, and those that it cannot, with the
    reason."""
    good, bad = [], []
    for other in applying_to(entry.family, entry.options, entry.mel_flow):
        if other is one or not _has_page(other):
            continue
        used = (UsedTechnique(one.name), UsedTechnique(other.name))
        reason = conflict(Setting(entry.id, entry.options_with(), used))
        # What cannot be used with default knobs by itself says nothing of the pair.
        alone = conflict(Setting(entry.id, entry.options_with(), used[1:]))
        if reason is None:
            good.append(other)
        elif reason != alone:
            bad.append((other, reason))
    return good, bad


def _link(one: Technique) -> str:
    return f"[{escaped(one.title)}](/techniques/{one.name}.md)"


def _has_page(one: Technique) -> bool:
    """Whether it is ours: those of other packages, which may be installed here, have no page."""
    return (_PAGES / f"{one.name}.md").is_file()


def _source(one: Technique) -> str:
    """Paper and reference, with links where an address follows from it."""
    reference = _ARXIV.sub(r"[arXiv \1](https://arxiv.org/abs/\1)", one.paper.reference)
    reference = _NUMBER.sub(
        lambda found: (
            found[0]
            if f"/{found[1]}" in reference or f"arXiv {found[1]}" in reference
            else f"[{found[1]}](https://arxiv.org/abs/{found[1]})"
        ),
        reference,
    )
    reference = _PLACE.sub(r"[\1](https://\1)", reference)
    return f"{escaped(one.paper.title)}; {reference}"


def _shown(knob: Knob, value: object) -> str:
    if isinstance(knob, Switch):
        return "`on`" if value else "`off`"
    if isinstance(value, float):
        return f"`{value:g}`"
    return f"`{value}`" if value != "" else "empty"
