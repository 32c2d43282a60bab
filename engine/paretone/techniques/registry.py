"""Registry of techniques: the entry-point group ``paretone.techniques`` (:mod:`paretone.plug_ins`). Torch-free."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from paretone.errors import SettingError
from paretone.figures.glyphs import Mark, derived_mark
from paretone.models import catalogue
from paretone.models.base import LANGUAGE, MelFlow
from paretone.plug_ins import PlugIns, streams_lent
from paretone.reading import shown
from paretone.setting.knobs import Knob
from paretone.setting.plan import described, named
from paretone.techniques import admission
from paretone.techniques.base import Technique

GROUP = "paretone.techniques"


@dataclass
class Registry(PlugIns):
    techniques: tuple[Technique, ...] = ()


def techniques() -> tuple[Technique, ...]:
    """All techniques, in the order of lists."""
    return registry().techniques


def problems() -> tuple[str, ...]:
    """A sentence for each omitted plug-in, models included, and for later failures of others."""
    # A package whose entry points are damaged is found by both.
    return tuple(dict.fromkeys((*catalogue.catalogue().problems, *registry().problems)))


def plug_in(name: str) -> str:
    """The plug-in with the technique called ``name``, for messages; ``""`` for ours."""
    return registry().plug_ins.get(name, "")


def brought(what: str) -> Iterator[tuple[Technique, Any]]:
    """Import modules or objects (``"package.module:name"``) of techniques' field ``what``. Failures are reported."""
    for one in techniques():
        there = getattr(one, what)
        for name in filter(None, (there,) if isinstance(there, str) else there):
            try:
                with streams_lent():
                    found = named(name)
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # No error may affect the other techniques.
                if not plug_in(one.name) and not isinstance(error, ImportError):
                    raise
                registry().report(
                    f"{one.title}: {what} in {name} were left out ({described(error, name)}); mend "
                    f"{plug_in(one.name) or 'the installation'}."
                )
            else:
                yield one, found


def report_taken(owner: Technique, kind: str, name: str) -> None:
    """Report that what ``owner`` brings was left out, because there is another ``kind``, such as "bench", so named."""
    registry().report(f"{owner.title}: its {kind} {name!r} was left out: there is one of that name; rename it.")


@cache
def registry() -> Registry:
    """The registry, built once; ``registry.cache_clear()`` rebuilds it."""
    found: dict[str, Technique] = {}
    claimed: dict[tuple[str, str], str] = {}
    made = Registry()
    for loaded, point in made.declared(GROUP, admission.fault):
        claims = dict.fromkeys(_claims(loaded), loaded.name)
        taken = next((one for one in claims if one in claimed), None)
        if taken is not None:
            made.leave_out_taken(point, *taken, loaded.name)
            continue
        claimed |= claims
        if own := made.own(point, loaded.name):
            loaded = admission.held(loaded, own, made.report)
        found[loaded.name] = loaded
    made.techniques = tuple(sorted(found.values(), key=lambda one: (one.place, one.title)))
    return made


def find(name: str) -> Technique | None:
    """The technique called ``name``, if any: stored names may belong to another version or plug-in."""
    return next((one for one in techniques() if one.name == name), None)


def technique(name: str) -> Technique:
    """The technique called ``name``. Raises :class:`SettingError` with a similar name, or why it was left out."""
    found = find(name)
    if found is None:
        titled = [one.name for one in techniques() if name.lower() in one.title.lower()]  # As papers call it.
        if len(titled) == 1:
            raise SettingError(f"There is no technique named {shown(name)}; did you mean {titled[0]!r}?")
        raise registry().unknown("technique", name, (one.name for one in techniques()))
    return found


def applying_to(family: str, options: Iterable[Knob], mel_flow: MelFlow | None = None) -> tuple[Technique, ...]:
    """Techniques for a model of ``family`` with ``options``; ``mel_flow``: the flow after a language model."""
    names = {knob.name for knob in options}

    def applies(one: Technique) -> bool:
        if family == LANGUAGE and one.of_mel_flow:
            return one.runs_on(mel_flow)
        return names.issuperset(one.options)

    return tuple(one for one in techniques() if family in one.families and applies(one))


def _claims(one: Technique) -> Iterator[tuple[str, str]]:
    """Names that must be unique, each with its kind."""
    yield "a technique", one.name
    yield "a technique", one.title
    for name, _ in one.benches:
        yield "a bench", name
    if one.artefact is not None:
        yield "an artefact", one.artefact.key
    if one.artefact_file is not None:
        yield "an option", one.artefact_file.option
        for name in one.artefact_file.knobs:
            yield "an option", name


def technique_mark(name: str) -> Mark:
    """Mark of a technique, of this version or not, installed or not."""
    found = find(name)
    return found.mark if found is not None and found.mark is not None else derived_mark(name)


def in_order(names: Iterable[str]) -> tuple[str, ...]:
    """Ours as declared, then all others by name; step pruning last. A point with several techniques has the first one's
    shape and all colours, from the left: step pruning combines with all, so the point looks like the other one."""

    def rank(name: str) -> tuple[bool, bool, int, str]:
        found = find(name)
        if found is None or found.mark is None:
            return False, True, 0, name
        return name == "steps", False, found.place, name

    return tuple(sorted(names, key=rank))
