"""What the user changes in the selection, as entries of the undo stack: knobs, techniques, options, text, voice, seed.

The selection itself can be changed without that, as loading a model does. An artefact that follows the selection, such
as the strategy table of another step grid, comes back with the selection it belonged to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from PySide6.QtCore import QObject, Slot
from PySide6.QtGui import QUndoCommand, QUndoStack

from paretone.setting.knobs import Knob
from paretone.setting.library import TakeSummary
from paretone.setting.setting import Artefact, Setting
from paretone.setting.take import Take
from paretone.techniques import technique
from paretone_app.state.artefacts import Artefacts
from paretone_app.state.differences import value_text
from paretone_app.state.selection import Choices, Selection
from paretone_app.state.undo import ALONE

_FIRST_ID = 100
"""Ids of merged edits, from here on; artefacts' edits have smaller ones."""


class Editing(QObject):
    """Changes the selection for the user. What is changed repeatedly, as by a spin box's arrow, is one entry."""

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
        selection.model_changed.connect(self._follow_model)

    # --- Changes ------------------------------------------------------------------------------------------------------
    def set_option(self, name: str, value: object) -> None:
        """As :meth:`Selection.set_option`."""
        knob = next(one for one in self._selection.sampler_knobs if one.name == name)
        self._do(_setting_of(knob, value), lambda: self._selection.set_option(name, value), "option", name)

    def set_knob(self, name: str, knob: str, value: object) -> None:
        """As :meth:`Selection.set_knob`. A change of an artefact that the knob causes is a separate entry."""
        declared = next(one for one in technique(name).knobs if one.name == knob)
        self._do(_setting_of(declared, value), lambda: self._selection.set_knob(name, knob, value), "knob", name, knob)

    def switch(self, name: str, on: bool) -> None:
        """As :meth:`Selection.switch`."""
        self._do(f"switch {'on' if on else 'off'} {technique(name).title}", lambda: self._selection.switch(name, on))

    def choose_weights(self, name: str, fingerprint: str) -> None:
        """As :meth:`Selection.choose_weights`."""
        self._do(
            f"choose weights of {technique(name).title}", lambda: self._selection.choose_weights(name, fingerprint)
        )

    def choose_voice(self, voice: str) -> None:
        """As :meth:`Selection.choose_voice`."""
        found = next((one.title for one in self._selection.voices if one.id == voice), voice)
        self._do(f"choose voice {found}", lambda: self._selection.choose_voice(voice))

    def set_text(self, text: str, typed: bool = False) -> None:
        """As :meth:`Selection.set_text`; what is ``typed`` on end is one entry."""
        self._do("edit text" if typed else "choose sentence", lambda: self._selection.set_text(text), *_TYPED[typed])

    def set_seed(self, seed: int) -> None:
        """As :meth:`Selection.set_seed`."""
        self._do(f"set seed {seed}", lambda: self._selection.set_seed(seed), "seed")

    def set_seed_locked(self, locked: bool) -> None:
        """As :meth:`Selection.set_seed_locked`."""
        self._do(f"{'lock' if locked else 'unlock'} seed", lambda: self._selection.set_seed_locked(locked))

    def use_setting(self, take: Take | TakeSummary) -> str:
        """As :meth:`Selection.use_setting`."""
        cautions: list[str] = []
        self._do("use setting of a take", lambda: cautions.append(self._selection.use_setting(take)))
        return cautions[0]

    def adopt_setting(self, setting: Setting) -> None:
        """As :meth:`Selection.adopt_setting`."""
        self._do("use setting of a study", lambda: self._selection.adopt_setting(setting))

    def adopt_profile(self, setting: Setting, artefacts: Sequence[Artefact], voice: str, why: str) -> None:
        """Select everything that ``setting`` says, with its ``artefacts`` and ``voice``, as one entry named ``why``."""
        with self._changing():
            self._stack.beginMacro(why)
            try:
                self._do(why, lambda: self._selection.adopt_setting(setting, voice=voice))
                self._artefacts.adopt_all(setting, artefacts, why)
            finally:
                self._stack.endMacro()
        made = self._stack.command(self._stack.index() - 1)
        if made.childCount() == 0:  # Everything was selected already.
            made.setObsolete(True)
            self._stack.undo()

    def forget(self) -> None:
        """Discard all entries: they belong to something that is no longer used. Ignored during an edit, an undo or a
        redo."""
        if not self._depth:
            self._stack.clear()

    # --- Inside -------------------------------------------------------------------------------------------------------
    def _do(self, text: str, change: Callable[[], object], *kind: str) -> None:
        """Call ``change``, and make an entry called ``text`` if it changed anything and made none itself. Entries of
        one ``kind`` are merged."""
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
        """Select ``choices`` again, with the ``artefacts`` that were in use then."""
        with self._changing():
            self._selection.put_choices(choices)
            self._artefacts.put_back(artefacts)

    @property
    def in_use(self) -> Mapping[str, Artefact]:
        """The artefacts in use, by technique."""
        return self._artefacts.in_use

    @contextmanager
    def _changing(self) -> Iterator[None]:
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1

    @Slot()
    def _count(self) -> None:
        self._pushes += 1

    @Slot()
    def _follow_model(self) -> None:
        """Entries belong to the model that they were made for."""
        if self._model != self._selection.model_id:
            self._model = self._selection.model_id
            self.forget()


_TYPED: Mapping[bool, tuple[str, ...]] = {True: ("text",), False: ()}


class _Change(QUndoCommand):
    """From some choices to others. It was done already when it is pushed."""

    def __init__(
        self,
        text: str,
        editing: Editing,
        before: Choices,
        after: Choices,
        artefacts: Mapping[str, Artefact],
        merging: int,
    ) -> None:
        super().__init__(text)
        self._editing, self._before, self._after, self._merging = editing, before, after, merging
        self._artefacts_before, self._artefacts_after = artefacts, editing.in_use
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
        if self._done:
            self._done = False
            return
        self._editing.put(self._after, self._artefacts_after)

    def undo(self) -> None:
        self._artefacts_after = self._editing.in_use
        self._editing.put(self._before, self._artefacts_before)


def _setting_of(knob: Knob, value: object) -> str:
    title = knob.title if knob.title[:2].isupper() else knob.title[0].lower() + knob.title[1:]
    return f"set {title} {value_text(knob, value)}"
