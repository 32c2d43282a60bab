"""The user's own recordings as voices: added, changed and removed, each of which can be undone."""

from __future__ import annotations

from dataclasses import replace

from PySide6.QtCore import QObject, Slot
from PySide6.QtGui import QUndoStack

from paretone.models.base import Voice
from paretone.models.own_voices import is_own, known_as
from paretone_app.state.selection import Selection
from paretone_app.state.undo import Edit


class OwnVoices(QObject):
    """Changes the selection's own voices for the user. Every one has a name that no other voice has."""

    def __init__(self, selection: Selection, stack: QUndoStack, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._selection, self._stack = selection, stack
        selection.changed.connect(self._tell_names)
        self._tell_names()

    @property
    def chosen(self) -> Voice | None:
        """The chosen voice, if it is the user's own."""
        voice = self._selection.voice
        return voice if voice is not None and is_own(voice.id) else None

    def add(self, voice: Voice) -> None:
        """Add a recording, in place of an earlier one with the same id, and choose it."""
        named = replace(voice, title=self.free_name(voice.title, voice.id))
        others = [one for one in self._selection.own_voices if one.id != voice.id]
        self._put(f"add voice {named.title}", (*others, named), named)

    def change(self, voice: Voice, title: str, transcript: str) -> None:
        """Give the recording ``voice`` another name or transcript."""
        changed = replace(voice, title=self.free_name(title, voice.id), transcript=transcript)
        if changed == voice:
            return
        what = "edit transcript of" if changed.title == voice.title else "rename voice"
        kept = tuple(changed if one.id == voice.id else one for one in self._selection.own_voices)
        self._put(f"{what} {voice.title}", kept, changed if self.chosen == voice else self._selection.voice)

    def remove(self, voice: Voice) -> None:
        """Take a recording out of the list; its file stays. If it was chosen, the model's first voice is."""
        kept = tuple(one for one in self._selection.own_voices if one.id != voice.id)
        chosen = self._selection.voice
        self._put(f"remove voice {voice.title}", kept, None if chosen == voice else chosen)

    def free_name(self, wanted: str, voice: str = "") -> str:
        """``wanted``, with a number if a voice other than ``voice`` is called so."""
        base = " ".join(wanted.split()) or "My voice"
        taken = {one.title.casefold() for one in self._selection.voices if one.id != voice}
        name, number = base, 1
        while name.casefold() in taken:
            number += 1
            name = f"{base} {number}"
        return name

    @Slot()
    def _tell_names(self) -> None:
        known_as(self._selection.own_voices)

    def _put(self, text: str, voices: tuple[Voice, ...], chosen: Voice | None) -> None:
        before = tuple(self._selection.own_voices), self._selection.voice
        self._stack.push(Edit(text, before, (voices, chosen), lambda one: self._selection.put_own_voices(*one)))
