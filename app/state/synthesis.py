"""Synthesising the selected text: the baseline, and with the techniques in use."""

from __future__ import annotations

import secrets

from PySide6.QtCore import QObject, Signal

from app.state.artefacts import Artefacts
from app.state.availability import Availability, require
from app.state.comparison import Comparison
from app.state.differences import measured_against, technique_text
from app.state.jobs import Jobs, Kind
from app.state.selection import SEED_LIMIT, Selection
from engine.session.commands import Synthesise
from engine.session.events import Event, TakeReady
from engine.setting.setting import Setting
from engine.setting.take import Take


class Synthesis(QObject):
    """Asks for takes, and compares those that arrive."""

    take_added = Signal(object)
    """A finished :class:`Take`."""

    def __init__(
        self,
        selection: Selection,
        artefacts: Artefacts,
        availability: Availability,
        comparison: Comparison,
        jobs: Jobs,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._selection = selection
        self._artefacts = artefacts
        self._availability = availability
        self._comparison = comparison
        self._jobs = jobs

    def synthesise_baseline(self) -> None:
        """Speak without techniques. Draws a new seed first unless it is locked. Raises when it cannot be done."""
        require(self._availability.why_not_synthesise())
        if not self._selection.seed_locked:
            self._selection.set_seed(secrets.randbelow(SEED_LIMIT))
        self._synthesise(Kind.BASELINE, self._selection.baseline_setting, "Baseline")

    def synthesise_accelerated(self) -> None:
        """Speak with the techniques in use, with the baseline's seed. Raises when it cannot be done."""
        require(self._availability.why_not_accelerate())
        setting = self._selection.setting
        self._synthesise(Kind.ACCELERATED, setting, technique_text(setting))

    def _synthesise(self, kind: Kind, setting: Setting, label: str) -> None:
        text, voice, artefacts = self._selection.text, self._selection.speaker, self._artefacts.of(setting)
        self._jobs.start(kind, lambda job: Synthesise(job, text, voice, setting, artefacts, label))

    @property
    def baseline_is_current(self) -> bool:
        """Whether A is the baseline of what is selected now."""
        return self._is_current(self._comparison.take_a, self._selection.baseline_setting)

    @property
    def accelerated_is_current(self) -> bool:
        """Whether B was made with the techniques and all else that is selected now."""
        setting = self._selection.setting
        return bool(setting.techniques) and self._is_current(self._comparison.take_b, setting)

    def _is_current(self, take: Take | None, setting: Setting) -> bool:
        chosen = self._selection
        if take is None or chosen.voice is None or chosen.candidate:
            return False
        if chosen.info is not None and take.checkpoint not in ("", chosen.info.fingerprint):
            return False
        return (take.setting, take.text, take.voice) == (setting, chosen.text, chosen.voice.id)

    def follow(self, event: Event) -> None:
        """Compare a finished take: accelerated ones as B, measured against A; others as A."""
        if not isinstance(event, TakeReady):
            return
        accelerated, compared = bool(event.take.setting.techniques), self._comparison
        take = measured_against(event.take, compared.take_a) if accelerated else event.take
        self.take_added.emit(take)
        (compared.set_b if accelerated else compared.set_a)(take)
        self._selection.changed.emit()
