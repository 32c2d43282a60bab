"""Plug-ins: what packages declare under a group of entry points, ``paretone.techniques`` or ``paretone.models``.
Torch-free.

Ours are registered in ``pyproject.toml``, a researcher's likewise in its own package. In a checkout, ours are read from
its ``pyproject.toml``, so that they are found even if the installed metadata is older. A plug-in that cannot be
imported, or whose declaration is faulty, is left out and named in one sentence; all others work.
"""

from __future__ import annotations

import contextlib
import inspect
import io
import logging
import sys
import threading
import tomllib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.metadata import Distribution, EntryPoint, EntryPoints, distributions, entry_points
from typing import IO, Any, TextIO, cast

from paretone.by_name import nearest
from paretone.errors import SettingError, plug_ins
from paretone.own_process import packaged
from paretone.paths import CHECKOUT
from paretone.reading import named_first, shown
from paretone.setting.plan import described, kind_of

OURS = "paretone"
_OWN_PACKAGES = ("paretone", "paretone_app")
_log = logging.getLogger(__name__)
_WHERE_ELSE = (
    "The packaged program finds no plug-ins; if one brings it, install Paretone and the plug-in with pip or uv."
    if packaged()
    else "If a plug-in brings it, install the plug-in."
)


@dataclass
class PlugIns:
    """Plug-ins of one group, as found in this process."""

    problems: list[str] = field(default_factory=list)
    """A sentence for each omitted plug-in, and for later failures of others."""
    left_out: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)
    """The sentence of each omitted plug-in, and the known names of it and of what it declares."""
    plug_ins: dict[str, str] = field(default_factory=dict)
    """The plug-in of each declaration that is not ours, by name, such as ``the plug-in 'a' of plugin-a 2.0``."""

    def leave_out(self, sentence: str, *names: str) -> None:
        self.problems.append(sentence)
        self.left_out.append((sentence, names))

    def leave_out_taken(self, point: EntryPoint, what: str, name: str, *names: str) -> None:
        """Leave out the declaration at ``point``, called ``names``: another has brought ``what`` of this ``name``."""
        self.leave_out(
            f"The plug-in {called(point)} brings {what} named {shown(name)}, which is there already; it was left out. "
            "Give it another name.",
            point.name,
            *names,
        )

    def report(self, sentence: str) -> None:
        """Record a failure of a plug-in, once."""
        if sentence not in self.problems:
            self.problems.append(sentence)
            _log.warning("%s", sentence)

    def unknown(self, one: str, name: str, known: Iterable[str]) -> SettingError:
        """Refusal of a ``name`` of ``one``, such as ``"model"``: a similar one of ``known``, or why it was left out."""
        known, head = list(known), f"There is no {one} named {shown(name)}"
        reasons = {each: sentence for sentence, names in self.left_out for each in names}
        near = str(name) if str(name) in reasons else nearest(name, [*known, *reasons])
        if near in reasons:
            return SettingError(f"{head}{'' if near == name else f' (did you mean {near!r}?)'}. {reasons[near]}")
        if near:
            return SettingError(f"{head}; did you mean {near!r}?")
        nameless = "".join(f" {sentence}" for sentence, names in self.left_out if not names)
        return SettingError(f"{head}; known {one}s: {named_first(known, 8)}. {_WHERE_ELSE}{nameless}")

    def declared(self, group: str, fault: Callable[[object, str], str]) -> Iterator[tuple[Any, EntryPoint]]:
        """Declarations of ``group``, ours first: no plug-in takes their names. ``fault``: why an object that an entry
        point names cannot be used, as the end of a sentence, or ``""``."""
        for point in self._points(group):
            if (found := self._loaded(point, fault)) is not None:
                yield found, point

    def own(self, point: EntryPoint, name: str) -> str:
        """Note that ``name`` was declared at ``point``; return its plug-in in words, ``""`` for ours."""
        if is_ours(point):
            return ""
        words = self.plug_ins[name] = f"the plug-in {called(point)}"
        root = point.module.partition(".")[0]
        if root not in _OWN_PACKAGES:
            plug_ins[root] = words
        return words

    def _loaded(self, point: EntryPoint, fault: Callable[[object, str], str]) -> Any:
        """The declaration of ``point``, or ``None`` and a problem if it is faulty."""
        left_out, found = f"The plug-in {called(point)} was left out", None
        try:
            with streams_lent():
                found = point.load()
                reason = fault(found, point.value)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # No error of a plug-in may affect the others.
            reason = described(error, point.value)
            self.leave_out(
                f"{left_out}: it cannot be imported ({reason}). Mend it, or uninstall its package.", point.name
            )
            return None
        if reason:
            names = (getattr(found, field, "") for field in ("name", "id"))
            self.leave_out(
                f"{left_out}: {reason}.", point.name, *(one for one in names if one and isinstance(one, str))
            )
            return None
        return found

    def _points(self, group: str) -> Iterator[EntryPoint]:
        """Entry points, ours first; unreadable metadata becomes a problem."""
        installed = sorted(self._installed(group), key=lambda one: not is_ours(one))
        project = CHECKOUT / "pyproject.toml"
        if not project.is_file():
            yield from installed
            return
        listed = tomllib.loads(project.read_text(encoding="utf-8"))["project"]["entry-points"][group]
        yield from (EntryPoint(name, value, group) for name, value in listed.items())
        yield from (one for one in installed if not is_ours(one))

    def _installed(self, group: str) -> list[EntryPoint]:
        with contextlib.suppress(Exception):
            return list(_entry_points(tuple(sys.path)).select(group=group))
        # One distribution's entry points are damaged: find which.
        found: dict[str, EntryPoint] = {}
        for one in distributions():
            try:
                for point in one.entry_points.select(group=group):
                    found.setdefault(f"{_distribution(one)} {point.name}", point)
            except Exception as error:
                where = getattr(one, "_path", "")
                self.leave_out(
                    f"The plug-ins of {_distribution(one) or 'a package'} were left out: its entry points in {where} "
                    f"cannot be read ({type(error).__name__}: {error}). Install it again."
                )
        return list(found.values())


@lru_cache(maxsize=1)
def _entry_points(path: Sequence[str]) -> EntryPoints:
    """Of all groups, found on ``path``, which is Python's: looking through all packages takes long."""
    return cast("EntryPoints", entry_points())  # An older class of Python 3.11 with the same method.


@lru_cache(maxsize=64)
def _distribution(one: Distribution | None) -> str:
    """Name and version of a package; ``""`` if its metadata cannot be read."""
    try:
        return f"{one.metadata['Name']} {one.version}" if one is not None else ""
    except Exception:
        return ""


def is_ours(point: EntryPoint) -> bool:
    """Whether it belongs to Paretone: entry points from our ``pyproject.toml`` have no distribution."""
    return point.dist is None or _distribution(point.dist).partition(" ")[0] == OURS


def called(point: EntryPoint) -> str:
    """Name of the plug-in, with its package."""
    package = _distribution(point.dist)
    return f"{shown(point.name)} of {package}" if package else shown(point.name)


def fault_of_function(field: str, function: object, arguments: int) -> str:
    """Why a declaration's ``function`` cannot be called with so many arguments, as the end of a sentence, or ``""``."""
    if not callable(function):
        return f"{field} must be a function, not {kind_of(function)}"
    try:
        inspect.signature(function).bind(*range(arguments))
    except TypeError:
        return f"{field} must take {arguments} argument{'s' * (arguments > 1)}"
    except ValueError:
        pass  # Signatures of functions outside Python are unknown.
    return ""


@contextlib.contextmanager
def streams_lent() -> Iterator[None]:
    """Lend standard streams to a plug-in, which may close or replace them. Its output goes to standard error: standard
    output is for results, and must remain JSON. Other threads keep theirs meanwhile."""
    thread = threading.get_ident()
    with _LENDING:
        if not _lent:
            _own[:] = sys.stdout, sys.stderr
        before = _lent.get(thread)
        _lent[thread] = _text(_own[1]), _text(_own[1])
        sys.stdout, sys.stderr = _BY_THREAD
    try:
        yield
    finally:
        with _LENDING:
            del _lent[thread]
            if before is not None:
                _lent[thread] = before
            sys.stdout, sys.stderr = _BY_THREAD if _lent else _own


def _text(own: TextIO | None) -> TextIO:
    return io.TextIOWrapper(cast(IO[bytes], _Lent(own)), "utf-8", "backslashreplace", write_through=True)


class _ByThread:
    """A standard stream while some threads' are lent, by its place in the pair."""

    def __init__(self, place: int) -> None:
        self._place = place

    def __getattr__(self, name: str) -> Any:
        one = _lent.get(threading.get_ident(), _own)[self._place]
        return getattr(_text(None) if one is None else one, name)


_LENDING = threading.Lock()
_own: list[TextIO] = []
_lent: dict[int, tuple[TextIO, TextIO]] = {}
"""By thread: its output and its errors."""
_BY_THREAD = cast(tuple[TextIO, TextIO], (_ByThread(0), _ByThread(1)))


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
