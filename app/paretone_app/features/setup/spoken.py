"""*As spoken*: what the bundled models read, in bold where it is written otherwise; *Pronounce as…* teaches a word."""

from __future__ import annotations

from collections.abc import Callable
from difflib import SequenceMatcher
from html import escape
from typing import TYPE_CHECKING

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QDialog, QDialogButtonBox, QLineEdit, QPlainTextEdit, QWidget

from paretone.errors import PlainError
from paretone.front_end import pronunciations
from paretone_app.shell.theme import GAP
from paretone_app.state.app_state import AppState
from paretone_app.widgets import build
from paretone_app.widgets.layouts import FormLayout, VBoxLayout

if TYPE_CHECKING:
    from paretone.front_end.writing import Sentence

MOST_READ, MOST_SHOWN = 1500, 500
"""Characters of the text, and of what is read in it."""


def marked(sentences: tuple[Sentence, ...]) -> str:
    """Rich text of ``sentences`` with words in bold that are not written so; empty if all are."""
    found, changed = list[str](), False
    for sentence in sentences:
        written, read = "".join(token.text for token in sentence.tokens).split(), sentence.text.split()
        plain = [[one.rstrip(".,") for one in words] for words in (written, read)]
        for kind, _, _, first, last in SequenceMatcher(None, plain[0], plain[1], autojunk=False).get_opcodes():
            words = escape(" ".join(read[first:last]))
            changed = changed or kind != "equal"
            found += [words if kind == "equal" else f"<b>{words}</b>"] if words else []
        if sum(map(len, found)) > MOST_SHOWN:
            found.append("…")
            break
    return " ".join(found) if changed else ""


class AsSpoken(QWidget):
    """Below the text of Setup, with a button that is put elsewhere; for the bundled models."""

    taught = Signal()
    problem = Signal(str)

    def __init__(self, state: AppState, text: QPlainTextEdit, waits: bool = False) -> None:
        super().__init__()
        self._state, self._text = state, text
        self._shown: tuple[str, bool] | None = None
        self.waits = waits
        """Whether the text is not read yet: the rules for that take longer to import than the window to be painted."""
        self.spoken = build.words("muted", name="As spoken", rich=True, selectable=True)
        tip = "Teach the bundled models the selected word of the text, or the one at the cursor"
        self.pronounce = build.button("&Pronounce as…", self.ask, tip)
        build.fill(VBoxLayout(self), [self.spoken])

    def show_text(self) -> None:
        """Follow text, model and order of dates."""
        selection = self._state.selection
        self.pronounce.setVisible(selection.entry.bundled)
        now = selection.text[:MOST_READ], selection.options.get("dates") == "british"
        if not selection.entry.bundled or now == self._shown:
            self.setVisible(selection.entry.bundled and bool(self.spoken.text()))
            return
        if self.waits:
            return
        from paretone.front_end.writing import write_out  # Slow to import.

        self._shown = now
        said = marked(write_out(*now).sentences)
        self.spoken.setText(f"As spoken: {said}" if said else "")
        self.setVisible(bool(said))

    def ask(self) -> None:
        cursor = self._text.textCursor()
        if not cursor.hasSelection():
            cursor.select(cursor.SelectionType.WordUnderCursor)
        try:
            dialog = PronounceDialog(cursor.selectedText().strip(), self.window())
        except PlainError as error:
            self.problem.emit(str(error))
            return
        dialog.changed.connect(self.taught)
        build.show(dialog)


class PronounceDialog(QDialog):
    """A word and its pronunciation. Raises :class:`paretone.errors.TextError` for a damaged lexicon."""

    changed = Signal()

    def __init__(self, word: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle("Pronounce as")
        self._words = {one.casefold(): said for one, said in pronunciations.read_lexicon().items()}
        self.word = build.named(QLineEdit(word), "Word")
        self.said = build.named(QLineEdit(placeholderText="PAIR-uh-tone, or /ˈpɛɹətoʊn/"), "Said")
        self.remark = build.words("muted", name="Sounds")
        kinds = QDialogButtonBox.StandardButton
        self.buttons = QDialogButtonBox(kinds.Save | kinds.Cancel)
        self.forget = self.buttons.addButton("&Forget", QDialogButtonBox.ButtonRole.ResetRole)
        self.forget.setToolTip("Say the word as before")
        self.forget.clicked.connect(lambda: self._change(pronunciations.forget))
        self.buttons.accepted.connect(lambda: self._change(pronunciations.teach, self.said.text()))
        self.buttons.rejected.connect(self.reject)
        form = FormLayout()
        form.addRow("&Word", self.word)
        form.addRow("&Said", self.said)
        build.fill(VBoxLayout(self), [form, self.remark, self.buttons], (GAP, GAP, GAP, GAP))
        self.word.textChanged.connect(self._show_word)
        self.said.textChanged.connect(self._show_sounds)
        self._show_word()
        (self.said if word else self.word).setFocus()

    def _show_word(self) -> None:
        known = self._words.get(self.word.text().strip().casefold(), "")
        self.forget.setEnabled(bool(known))
        if known and not self.said.isModified():
            self.said.setText(known)
        self._show_sounds()

    def _show_sounds(self) -> None:
        """What the models hear, or why it cannot be kept."""
        save = self.buttons.button(QDialogButtonBox.StandardButton.Save)
        if not (self.word.text().strip() and self.said.text().strip()):
            save.setEnabled(False)
            self.remark.setText(
                "Capitals for the stressed syllable, or IPA between slashes. All bundled models say it so."
            )
            return
        try:
            pronunciations.checked_word(self.word.text())
            self.remark.setText(f"Sounds: {pronunciations.phonemes(self.said.text())}")
            save.setEnabled(True)
        except PlainError as error:
            self.remark.setText(str(error))
            save.setEnabled(False)

    def _change(self, change: Callable[..., object], *said: str) -> None:
        try:
            change(self.word.text(), *said)
        except PlainError as error:
            self.remark.setText(str(error))
            return
        self.changed.emit()
        self.accept()
