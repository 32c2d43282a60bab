"""Artefacts of techniques, such as strategy tables: one store per technique that has an artefact, in its feature. All
other code asks :class:`Artefacts`, without knowledge of the technique or the artefact's content."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from PySide6.QtCore import QObject, Signal

from paretone.errors import SettingError
from paretone.session.commands import Synthesise
from paretone.setting.knobs import Values
from paretone.setting.setting import Artefact, Setting, UsedTechnique
from paretone_app.state.jobs import Job


class ArtefactSource(QObject):
    """The artefact of one technique in use, and access to stored ones; :class:`ArtefactStore` implements it."""

    changed = Signal()
    """The artefact in use, or the one compared with it, changed."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.artefact: Any = None
        """The artefact in use, whether or not it fits."""
        self.made: dict[int, Any] = {}
        """What jobs of this session prepared, by number."""

    @property
    def origin(self) -> tuple[str, str] | None:
        """Name and summary of the artefact in use, for display."""
        raise NotImplementedError

    def problem(self) -> str:
        """Why the artefact in use does not fit the selection, as a sentence, or ``""``."""
        raise NotImplementedError

    def fits(self, artefact: Artefact) -> bool:
        raise NotImplementedError

    def find(self, entry: UsedTechnique) -> Artefact | None:
        """The available artefact with the fingerprint in ``entry``."""
        raise NotImplementedError

    def adopt(self, artefact: Artefact, why: str) -> None:
        """Use ``artefact``, with an undo entry named ``why``."""
        raise NotImplementedError

    request: type | None = None
    """Type of the requests that prepare the artefact."""

    def alike(self, known: Values, knobs: Values) -> bool:
        """Whether what is prepared with the knobs ``known`` serves ``knobs``."""
        return known == knobs

    def prepares(self, request: Any, setting: Setting, entry: UsedTechnique) -> bool:
        """Whether a preparation with ``request`` makes the artefact of this technique for ``setting``."""
        if self.request is None or not isinstance(request, self.request):
            return False
        prepared: Setting = request.setting  # type: ignore[attr-defined]
        known = prepared.technique(entry.technique)
        same = (prepared.model, prepared.options) == (setting.model, setting.options)
        return same and known is not None and self.alike(known.knobs, entry.knobs)

    def made_by(self, job: int, entry: UsedTechnique) -> Any:
        """What ``job`` prepared, for the knobs of ``entry``; ``None`` if nothing."""
        return self.made.get(job)

    def put_back(self, artefact: Artefact) -> None:
        """Use ``artefact`` again if it fits, without an undo entry."""
        raise NotImplementedError

    @property
    def records(self) -> tuple[object, ...]:
        """Measurements from its preparation, for views."""
        return ()

    def compare_with(self, artefact: Artefact | None) -> None:
        """Show ``artefact`` next to the one in use; ``None`` for the default comparison."""

    def set_knob(self, knob: str, value: object) -> bool:
        """Change a knob tied to the artefact; returns whether the knob is."""
        return False


class Artefacts(QObject):
    changed = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._sources: dict[str, ArtefactSource] = {}

    def add(self, technique: str, source: ArtefactSource) -> None:
        self._sources[technique] = source
        source.changed.connect(self.changed)

    def source(self, technique: str) -> ArtefactSource | None:
        return self._sources.get(technique)

    @property
    def sources(self) -> tuple[ArtefactSource, ...]:
        return tuple(self._sources.values())

    def awaited(self, setting: Setting, jobs: Iterable[Job]) -> tuple[Job, UsedTechnique] | None:
        """The last of ``jobs`` to prepare for ``setting``, and the entry that :meth:`with_made` completes."""
        for job in reversed(tuple(jobs)):
            request = getattr(job.command, "request", None)
            for entry in setting.techniques:
                source = self._sources.get(entry.technique)
                if source is not None and source.prepares(request, setting, entry):
                    return job, replace(entry, artefact="")
        return None

    def with_made(self, command: Synthesise, job: int) -> Synthesise:
        """``command`` with the artefact that ``job`` prepared. Raises :class:`SettingError` if there is none."""
        entry = next(one for one in command.setting.techniques if one.technique in self._sources and not one.artefact)
        made = self._sources[entry.technique].made_by(job, entry)
        if made is None:
            raise SettingError("The preparation before it made nothing to use.")
        setting = command.setting.with_technique(replace(entry, artefact=made.fingerprint))
        return replace(command, setting=setting, artefacts=(*command.artefacts, made))

    @property
    def in_use(self) -> Mapping[str, Artefact]:
        found = {name: source.artefact for name, source in self._sources.items()}
        return {name: artefact for name, artefact in found.items() if artefact is not None}

    def put_back(self, artefacts: Mapping[str, Artefact]) -> None:
        """Use ``artefacts`` again, a former value of :attr:`in_use`, if they fit."""
        for name, artefact in artefacts.items():
            self._sources[name].put_back(artefact)

    def fingerprint(self, technique: str) -> str:
        found = self.in_use.get(technique)
        return found.fingerprint if found is not None else ""

    def problem(self, technique: str) -> str:
        """Why the artefact of ``technique`` does not fit the selection, as a sentence, or ``""``."""
        source = self._sources.get(technique)
        return source.problem() if source is not None else ""

    def of(self, setting: Setting) -> tuple[Artefact, ...]:
        kept = (self._sources[one.technique].artefact for one in setting.techniques if one.technique in self._sources)
        return tuple(one for one in kept if one is not None)

    def entry(self, setting: Setting) -> UsedTechnique | None:
        """The first technique of ``setting`` with an artefact store."""
        return next((one for one in setting.techniques if one.technique in self._sources), None)

    def find(self, setting: Setting) -> Artefact | None:
        entry = self.entry(setting)
        return self._sources[entry.technique].find(entry) if entry is not None else None

    def adopt(self, setting: Setting, artefact: Artefact, why: str) -> None:
        """Use ``artefact`` for the technique of ``setting`` that has a store, with an undo entry named ``why``."""
        entry = self.entry(setting)
        if entry is not None:
            self._sources[entry.technique].adopt(artefact, why)

    def adopt_all(self, setting: Setting, artefacts: Iterable[Artefact], why: str) -> None:
        """Use each of ``artefacts`` for the technique of ``setting`` that names it, with undo entries named ``why``."""
        for artefact in artefacts:
            for entry in setting.techniques:
                if entry.artefact == artefact.fingerprint and entry.technique in self._sources:
                    self._sources[entry.technique].adopt(artefact, why)

    def compare_with(self, artefact: Artefact | None) -> None:
        """Show the artefact of a point chosen in a study next to the ones in use."""
        for source in self._sources.values():
            source.compare_with(artefact)
