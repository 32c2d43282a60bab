"""Speaking with a loaded model under a setting, without a plan. Models take plans. Each function here resolves its
setting once, and reads the text once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from paretone.models.base import Piece, SpeechModel, Synthesis, Voice
from paretone.observer import SILENT, Observer
from paretone.setting.setting import Artefact, Setting
from paretone.techniques.resolving import resolve


def scripted(
    model: SpeechModel,
    text: str,
    voice: Voice,
    setting: Setting,
    artefacts: Sequence[Artefact] = (),
    observer: Observer = SILENT,
    *,
    prepared: bool = True,
) -> Any:
    """Script of ``text`` for ``model``: see :class:`paretone.models.base.Script`. ``artefacts`` and ``prepared`` as in
    :func:`paretone.techniques.resolve`. Raises :class:`paretone.errors.PlainError`."""
    return model.script(text, voice, resolve(model.info, setting, artefacts, prepared=prepared), observer)


def synthesise(
    model: SpeechModel,
    text: str,
    voice: Voice,
    setting: Setting,
    artefacts: Sequence[Artefact] = (),
    observer: Observer = SILENT,
    play: Callable[[Piece], None] = lambda piece: None,
) -> Synthesis:
    """Speak to the end; ``play`` receives the pieces. Raises :class:`paretone.errors.PlainError`;
    :func:`paretone.finished_part` gives the part finished before an error or interrupt."""
    return model.speak(scripted(model, text, voice, setting, artefacts, observer), observer, play)


def make_ready(model: SpeechModel, setting: Setting, voice: Voice | None = None, observer: Observer = SILENT) -> None:
    """Let ``model`` load, warm up and measure for ``setting``; unprepared artefacts may be missing."""
    model.make_ready(resolve(model.info, setting, prepared=False), observer, voice)
