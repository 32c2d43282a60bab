"""Undoable changes of the selection: options, techniques, knobs, weights, own recordings."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from PySide6.QtCore import QObject
from PySide6.QtGui import QUndoCommand, QUndoStack

from paretone.models.base import Voice
from paretone.models.voices import is_own, known_as
from paretone.setting.knobs import Knob
from paretone.setting.library import TakeSummary
from paretone.setting.setting import Artefact, Published, Setting
from paretone.setting.take import Take
from paretone.techniques import technique
from paretone.techniques.published import as_published
from paretone_app.state.artefacts import Artefacts
from paretone_app.state.differences import value_text, within_sentence
from paretone_app.state.selection import Choices, Selection

ALONE = -1
"""Id of edits that are never merged."""


class Edit(QUndoCommand):
    """A change from ``before`` to ``after``, applied by ``put``; successive edits of one ``merging`` id merge."""

    def __init__(self, text: str, before: Any, after: Any, put: Callable[[Any], object], merging: int = ALONE) -> None:
        super().__init__(text)
        self._before, self._after, self._put, self._merging = before, after, put, merging

    def id(self) -> int:
        return self._merging

    def mergeWith(self, other: QUndoCommand) -> bool:
        if isinstance(other, Edit):
            self._after = other._after
        return isinstance(other, Edit)

    def redo(self) -> None:
        self._put(self._after)

    def undo(self) -> None:
        self._put(self._before)


_FIRST_ID = 100
"""First id of merged edits; artefacts' edits have smaller ones."""


class Editing(QObject):
    """Changes the selection for the user, undoably. Repeated changes, such as by a spin box's arrows, are one entry."""

    def __init__(
        self, selection: Selection, artefacts: Artefacts, stack: QUndoStack, parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self._selection, self._artefacts, self._stack = selection, artefacts, stack
        self._ids: dict[tuple[str, ...], int] = {}
        self._pushes = 0
        self._depth = 0
        self._model = selection.model_id
        stack.indexChanged.connect(self._count)
        # Recalling the last session also chooses a model, but emits only this signal.
        selection.changed.connect(self._follow_model)

    def set_option(self, name: str, value: object) -> None:
        knob = next(one for one in self._selection.entry.options if one.name == name)
        self._do(_setting_of(knob, value), lambda: self._selection.set_option(name, value), "option", name)

    def set_knob(self, name: str, knob: str, value: object) -> None:
        """As :meth:`Selection.set_knob`. A change of the artefact caused by the knob is a separate entry."""
        declared = next(one for one in technique(name).knobs if one.name == knob)
        self._do(_setting_of(declared, value), lambda: self._selection.set_knob(name, knob, value), "knob", name, knob)

    def switch(self, name: str, on: bool) -> None:
        self._do(f"switch {'on' if on else 'off'} {technique(name).title}", lambda: self._selection.switch(name, on))

    def choose_weights(self, name: str, fingerprint: str) -> None:
        what = f"choose weights of {technique(name).title}"
        self._do(what, lambda: self._selection.choose_weights(name, fingerprint))

    def use_published(self, name: str, one: Published) -> None:
        """Switch a technique on, with its knobs and the sampler options as published."""
        chosen, title = self._selection, technique(name).title
        self._do(f"set {title} as {one.name}", lambda: chosen.adopt_setting(as_published(chosen.setting, name, one)))

    def choose_voice(self, voice: str) -> None:
        found = next((one.title for one in self._selection.voices if one.id == voice), voice)
        self._do(f"choose voice {found}", lambda: self._selection.choose_voice(voice))

    def set_text(self, text: str, typed: bool = False) -> None:
        """As :meth:`Selection.set_text`; successive ``typed`` changes are one entry."""
        what, merging = ("edit text", ("text",)) if typed else ("choose sentence", ())
        self._do(what, lambda: self._selection.set_text(text), *merging)

    def set_seed(self, seed: int) -> None:
        self._do(f"set seed {seed}", lambda: self._selection.set_seed(seed), "seed")

    def set_seed_locked(self, locked: bool) -> None:
        self._do(f"{'lock' if locked else 'unlock'} seed", lambda: self._selection.set_seed_locked(locked))

    def set_one_per_line(self, on: bool) -> None:
        self._do("one take per line" if on else "one take", lambda: self._selection.set_one_per_line(on))

    def use_setting(self, take: Take | TakeSummary) -> str:
        cautions: list[str] = []
        self._do("use setting of a take", lambda: cautions.append(self._selection.use_setting(take)))
        return cautions[0]

    def adopt_setting(self, setting: Setting) -> None:
        self._do("use setting of a study", lambda: self._selection.adopt_setting(setting))

    def adopt_profile(self, setting: Setting, artefacts: Sequence[Artefact], voice: str, why: str) -> None:
        with self._changing():
            self._stack.beginMacro(why)
            try:
                self._do(why, lambda: self._selection.adopt_setting(setting, voice=voice))
                self._artefacts.adopt_all(setting, artefacts, why)
            finally:
                self._stack.endMacro()
        made = self._stack.command(self._stack.index() - 1)
        if made.childCount() == 0:  # Nothing changed.
            made.setObsolete(True)
            self._stack.undo()

    def forget(self) -> None:
        """Discard all entries: their subject is no longer in use. Ignored during an edit, undo or redo."""
        if not self._depth:
            self._stack.clear()

    def _do(self, text: str, change: Callable[[], object], *kind: str) -> None:
        """Call ``change``; push an entry if it changed anything and pushed none itself. Entries of a ``kind`` merge."""
        before, kept, pushes = self._selection.choices, self._artefacts.in_use, self._pushes
        with self._changing():
            change()
        after = self._selection.choices
        changed = {name for name in before if before[name] != after[name]}
        if changed and pushes == self._pushes:
            merging = self._ids.setdefault(kind, _FIRST_ID + len(self._ids)) if kind else ALONE
            one, other = ({name: each[name] for name in changed} for each in (before, after))
            self._stack.push(_Change(text, self, one, other, kept, merging))

    def put(self, choices: Choices, artefacts: Mapping[str, Artefact]) -> None:
        with self._changing():
            self._selection.put_choices(choices)
            self._artefacts.put_back(artefacts)

    @property
    def in_use(self) -> Mapping[str, Artefact]:
        return self._artefacts.in_use

    @contextmanager
    def _changing(self) -> Iterator[None]:
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1

    def _count(self) -> None:
        self._pushes += 1

    def _follow_model(self) -> None:
        if self._model != self._selection.model_id:
            self._model = self._selection.model_id
            self.forget()


class _Change(QUndoCommand):
    """A change of choices, already applied when pushed."""

    def __init__(
        self, text: str, editing: Editing, before: Choices, after: Choices, kept: Mapping[str, Artefact], merging: int
    ) -> None:
        """``kept``: the artefacts in use before."""
        super().__init__(text)
        self._editing, self._before, self._after, self._merging = editing, before, after, merging
        self._artefacts_before, self._artefacts_after = kept, editing.in_use
        self._done = True

    def id(self) -> int:
        return self._merging

    def mergeWith(self, other: QUndoCommand) -> bool:
        if not isinstance(other, _Change):
            return False
        self._before = {**other._before, **self._before}
        self._after = {**self._after, **other._after}
        self._artefacts_after = other._artefacts_after
        self.setText(other.text())
        self.setObsolete(self._before == self._after)
        return True

    def redo(self) -> None:
        if not self._done:
            self._editing.put(self._after, self._artefacts_after)
        self._done = False

    def undo(self) -> None:
        self._artefacts_after = self._editing.in_use
        self._editing.put(self._before, self._artefacts_before)


def _setting_of(knob: Knob, value: object) -> str:
    return f"set {within_sentence(knob.title)} {value_text(knob, value)}"


class OwnVoices(QObject):
    """Changes the list of own voices for the user, undoably. Names are unique."""

    def __init__(self, selection: Selection, stack: QUndoStack, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._selection, self._stack = selection, stack
        selection.changed.connect(self._tell_names)
        self._tell_names()

    @property
    def chosen(self) -> Voice | None:
        voice = self._selection.voice
        return voice if voice is not None and is_own(voice.id) else None

    def add(self, voice: Voice) -> None:
        """Add a recording, or replace one with the same id, and choose it."""
        named = replace(voice, title=self.free_name(voice.title, voice.id))
        others = [one for one in self._selection.own_voices if one.id != voice.id]
        self._put(f"add voice {named.title}", (*others, named), named)

    def change(self, voice: Voice, title: str, transcript: str) -> None:
        changed = replace(voice, title=self.free_name(title, voice.id), transcript=transcript)
        if changed == voice:
            return
        what = "edit transcript of" if changed.title == voice.title else "rename voice"
        kept = tuple(changed if one.id == voice.id else one for one in self._selection.own_voices)
        self._put(f"{what} {voice.title}", kept, changed if self.chosen == voice else self._selection.voice)

    def remove(self, voice: Voice) -> None:
        """Remove a recording from the list; its file stays. If it was chosen, choose the model's first voice."""
        kept = tuple(one for one in self._selection.own_voices if one.id != voice.id)
        chosen = self._selection.voice
        self._put(f"remove voice {voice.title}", kept, None if chosen == voice else chosen)

    def free_name(self, wanted: str, voice: str = "") -> str:
        """``wanted``, numbered if another voice than ``voice`` has the name."""
        base = " ".join(wanted.split()) or "My voice"
        taken = {one.title.casefold() for one in self._selection.voices if one.id != voice}
        name, number = base, 1
        while name.casefold() in taken:
            number += 1
            name = f"{base} {number}"
        return name

    def _tell_names(self) -> None:
        known_as(self._selection.own_voices)

    def _put(self, text: str, voices: tuple[Voice, ...], chosen: Voice | None) -> None:
        before = tuple(self._selection.own_voices), self._selection.voice
        self._stack.push(Edit(text, before, (voices, chosen), lambda one: self._selection.put_own_voices(*one)))
