"""Registry of techniques: the entry-point group ``paretone.techniques``. Torch-free.

Ours are registered in ``pyproject.toml``, a researcher's likewise in its own package. In a checkout, ours are read from
its ``pyproject.toml``, so that they are found even if the installed metadata is older. A plug-in that cannot be
imported, or is faulty (:mod:`paretone.techniques.admission`), is left out and named in one sentence; all others work.
"""

from __future__ import annotations

import contextlib
import io
import logging
import sys
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from importlib.metadata import Distribution, EntryPoint, distributions, entry_points
from typing import IO, Any, TextIO, cast

from paretone.by_name import nearest
from paretone.errors import SettingError, plug_ins
from paretone.figures.glyphs import Mark, derived_mark
from paretone.models.base import LANGUAGE
from paretone.own_process import packaged
from paretone.paths import CHECKOUT
from paretone.reading import shown
from paretone.setting.knobs import Knob
from paretone.setting.plan import described
from paretone.techniques import admission
from paretone.techniques.base import Technique

GROUP = "paretone.techniques"
OURS = "paretone"
_OWN_PACKAGES = ("paretone", "paretone_app")
_log = logging.getLogger(__name__)
_WHERE_ELSE = (
    "The packaged program finds no plug-ins; if one brings it, install Paretone and the plug-in with pip or uv."
    if packaged()
    else "If a plug-in brings it, install the plug-in."
)


@dataclass
class Registry:
    techniques: tuple[Technique, ...] = ()
    """In the order of lists."""
    problems: list[str] = field(default_factory=list)
    """A sentence for each omitted plug-in, and for later failures of others."""
    left_out: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)
    """The sentence of each omitted plug-in, and the known names of it and its technique."""
    plug_ins: dict[str, str] = field(default_factory=dict)
    """The plug-in of each technique that is not ours, by name, such as ``the plug-in 'a' of plugin-a 2.0``."""

    def leave_out(self, sentence: str, *names: str) -> None:
        self.problems.append(sentence)
        self.left_out.append((sentence, names))

    def report(self, sentence: str) -> None:
        """Record a failure of a plug-in, once."""
        if sentence not in self.problems:
            self.problems.append(sentence)
            _log.warning("%s", sentence)


def techniques() -> tuple[Technique, ...]:
    """All techniques, in the order of lists."""
    return registry().techniques


def problems() -> tuple[str, ...]:
    """A sentence for each omitted plug-in, and for later failures of others."""
    return tuple(registry().problems)


def plug_in(name: str) -> str:
    """The plug-in with the technique called ``name``, for messages; ``""`` for ours."""
    return registry().plug_ins.get(name, "")


def brought(what: str) -> Iterator[tuple[Technique, Any]]:
    """Import modules or objects (``"package.module:name"``) of techniques' field ``what``. Failures are reported."""
    for one in techniques():
        there = getattr(one, what)
        for name in filter(None, (there,) if isinstance(there, str) else there):
            try:
                with _streams_lent():
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


def named(name: str) -> Any:
    """The module called ``name``, or an object ``"package.module:object"``."""
    module, _, within = name.partition(":")
    found = import_module(module)
    return getattr(found, within) if within else found


@cache
def registry() -> Registry:
    """The registry, built once; ``registry.cache_clear()`` rebuilds it."""
    found: dict[str, Technique] = {}
    claimed: dict[tuple[str, str], str] = {}
    made = Registry()
    for point in _points(made):
        loaded, called = _loaded(point, made), _called(point)
        if loaded is None:
            continue
        claims = dict.fromkeys(_claims(loaded), loaded.name)
        taken = next((one for one in claims if one in claimed), None)
        if taken is not None:
            what, name = taken
            made.leave_out(
                f"The plug-in {called} brings {what} named {shown(name)}, which is there already; it was left out. "
                "Give it another name.",
                point.name,
                loaded.name,
            )
            continue
        claimed |= claims
        if not _is_ours(point):
            made.plug_ins[loaded.name] = f"the plug-in {called}"
            root = point.module.partition(".")[0]
            if root not in _OWN_PACKAGES:
                plug_ins[root] = made.plug_ins[loaded.name]
            loaded = admission.held(loaded, made.plug_ins[loaded.name], made.report)
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
        raise SettingError(f"There is no technique named {shown(name)}{_instead_of(name)}")
    return found


def _instead_of(name: str) -> str:
    """End of the sentence that refuses an unknown technique ``name``."""
    known, left_out = [one.name for one in techniques()], registry().left_out
    reasons = {one: sentence for sentence, names in left_out for one in names}
    near = name if name in reasons else nearest(name, [*known, *reasons])
    if near in reasons:
        return f"{'' if near == name else f' (did you mean {near!r}?)'}. {reasons[near]}"
    if near:
        return f"; did you mean {near!r}?"
    nameless = "".join(f" {sentence}" for sentence, names in left_out if not names)
    return f"; known techniques: {', '.join(known)}. {_WHERE_ELSE}{nameless}"


def applying_to(family: str, options: Iterable[Knob], mel_steps: int = 0) -> tuple[Technique, ...]:
    """Techniques for a model of ``family`` with ``options``; ``mel_steps``: of the flow after a language model."""
    names = {knob.name for knob in options}
    missing = family == LANGUAGE and not mel_steps
    return tuple(
        one
        for one in techniques()
        if family in one.families and names.issuperset(one.options) and not (missing and one.needs_mel_flow)
    )


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


def _points(made: Registry) -> Iterator[EntryPoint]:
    """Entry points, ours first: no plug-in takes their names; unreadable metadata becomes a problem of ``made``."""
    installed = sorted(_installed(made), key=lambda one: not _is_ours(one))
    project = CHECKOUT / "pyproject.toml"
    if not project.is_file():
        yield from installed
        return
    declared = tomllib.loads(project.read_text(encoding="utf-8"))["project"]["entry-points"][GROUP]
    yield from (EntryPoint(name, value, GROUP) for name, value in declared.items())
    yield from (one for one in installed if not _is_ours(one))


def _installed(made: Registry) -> list[EntryPoint]:
    with contextlib.suppress(Exception):
        return list(entry_points(group=GROUP))
    # One distribution's entry points are damaged: find which.
    found: dict[str, EntryPoint] = {}
    for one in distributions():
        try:
            for point in one.entry_points.select(group=GROUP):
                found.setdefault(f"{_distribution(one)} {point.name}", point)
        except Exception as error:
            where = getattr(one, "_path", "")
            made.leave_out(
                f"The plug-ins of {_distribution(one) or 'a package'} were left out: its entry points in {where} "
                f"cannot be read ({type(error).__name__}: {error}). Install it again."
            )
    return list(found.values())


def _distribution(one: Distribution | None) -> str:
    """Name and version of a package; ``""`` if its metadata cannot be read."""
    try:
        return f"{one.metadata['Name']} {one.version}" if one is not None else ""
    except Exception:
        return ""


def _is_ours(point: EntryPoint) -> bool:
    """Whether it belongs to Paretone: entry points from our ``pyproject.toml`` have no distribution."""
    return point.dist is None or _distribution(point.dist).partition(" ")[0] == OURS


def _loaded(point: EntryPoint, made: Registry) -> Technique | None:
    """The technique of ``point``, or ``None`` and a problem in ``made`` if it is faulty."""
    left_out, found = f"The plug-in {_called(point)} was left out", None
    try:
        with _streams_lent():
            found = point.load()
            reason = admission.fault(found, point.value)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # No error of a plug-in may affect the others.
        reason = described(error, point.value)
        made.leave_out(f"{left_out}: it cannot be imported ({reason}). Mend it, or uninstall its package.", point.name)
        return None
    if reason:
        called = getattr(found, "name", "")
        made.leave_out(f"{left_out}: {reason}.", point.name, *([called] if isinstance(called, str) and called else []))
        return None
    return found


@contextlib.contextmanager
def _streams_lent() -> Iterator[None]:
    """Lend standard streams to a plug-in, which may close or replace them. Its output goes to standard error: standard
    output is for results, and must remain JSON."""
    own = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (
        io.TextIOWrapper(cast(IO[bytes], _Lent(sys.stderr)), "utf-8", "backslashreplace", write_through=True)
        for _ in own
    )
    try:
        yield
    finally:
        sys.stdout, sys.stderr = own


class _Lent(io.RawIOBase):
    """Byte stream that writes to ``own`` and leaves it open when closed."""

    def __init__(self, own: TextIO | None) -> None:
        self._own = own

    def writable(self) -> bool:
        return True

    def isatty(self) -> bool:
        return self._own is not None and self._own.isatty()

    def fileno(self) -> int:
        return self._own.fileno() if self._own is not None else super().fileno()

    def write(self, content: object) -> int:
        data = bytes(content)  # type: ignore[call-overload]
        if self._own is not None:
            self._own.write(data.decode("utf-8", "replace"))
            self._own.flush()
        return len(data)


def _called(point: EntryPoint) -> str:
    """Name of the plug-in, with its package."""
    package = _distribution(point.dist)
    return f"{shown(point.name)} of {package}" if package else shown(point.name)


_GOES_WITH_ALL = "steps"


def technique_mark(name: str) -> Mark:
    """Mark of a technique, of this version or not, installed or not."""
    found = find(name)
    return found.mark if found is not None and found.mark is not None else derived_mark(name)


def in_order(names: Iterable[str]) -> tuple[str, ...]:
    """Ours as declared, then all others by name; step pruning last. A point with several techniques has the first one's
    shape and all colours, from the left: step pruning combines with all, so the point looks like the other
    technique."""
    return tuple(sorted(names, key=_rank))


def _rank(name: str) -> tuple[bool, bool, int, str]:
    found = find(name)
    ours = found is not None and found.mark is not None
    return name == _GOES_WITH_ALL, not ours, found.place if ours and found is not None else 0, name
