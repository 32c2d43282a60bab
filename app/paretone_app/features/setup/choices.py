"""The choice of a model, and of a voice."""

from collections.abc import Mapping
from pathlib import Path

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QLineEdit, QWidget

from paretone.errors import Cancelled
from paretone.models import catalogue
from paretone.models.base import Voice
from paretone.models.voices import Examined, examine, own_voice
from paretone_app.numbers import fixed, localised
from paretone_app.shell import file_dialogs
from paretone_app.shell.bridge import Background
from paretone_app.shell.theme import NEAR, set_look
from paretone_app.state.app_state import AppState
from paretone_app.state.selection import Selection
from paretone_app.widgets import build
from paretone_app.widgets.action import Action, ActionButton
from paretone_app.widgets.boxes import ComboBox
from paretone_app.widgets.layouts import VBoxLayout
from paretone_app.widgets.screen_readers import announce

CHECKPOINT_FOLDER = "Folder with the checkpoint"
VOCODER_FOLDER = "Folder with the vocoder"


class _ModelBox(ComboBox):
    """The choice of a model, which Enter confirms."""

    confirmed = Signal()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.confirmed.emit()
        else:
            super().keyPressEvent(event)


class ModelChoice(QWidget):
    """Choosing a model only shows it. The one in use stays until the other is loaded."""

    def __init__(self, selection: Selection, can: Mapping[str, Action]) -> None:
        super().__init__()
        self._selection = selection
        self.can = can
        self.box = build.narrow(build.named(_ModelBox(), "Model"), 10)
        build.offer(self.box, [(one.title, one.id, one.summary) for one in catalogue.models()], selection.model_id)
        self.box.activated.connect(lambda: selection.consider_model(self.box.currentData()))
        self.box.confirmed.connect(can["load"].trigger)
        self.note = build.words("muted")
        self.folder, self.download = ActionButton(can["choose_folder"]), ActionButton(can["download"])
        self.vocoder, self.usual_vocoder = ActionButton(can["choose_vocoder"]), ActionButton(can["usual_vocoder"])
        self.load, self.keep = ActionButton(can["load"]), ActionButton(can["keep"])
        can["keep"].triggered.connect(lambda: self.box.setFocus())
        self._official = build.row(self.folder, self.download)
        self._confirm = build.row(self.load, self.keep)
        self._vocoders = build.row(self.vocoder, self.usual_vocoder)
        parts = [self.box, self.note, self._official, self._vocoders, self._confirm]
        build.fill(VBoxLayout(self), parts).setSpacing(NEAR)

    def show_models(self) -> None:
        chosen = self._selection
        for index, one in enumerate(catalogue.models()):
            there = chosen.is_installed(one.id) or one.id == chosen.model_id
            self.box.setItemText(index, one.title if there else f"{one.title} (weights not installed)")

    def show_choice(self) -> None:
        chosen = self._selection
        entry, info, other = catalogue.entry(chosen.candidate or chosen.model_id), chosen.info, bool(chosen.candidate)
        missing = other and not chosen.is_installed(entry.id)
        self.box.setCurrentIndex(self.box.findData(entry.id))
        self._official.setVisible(not entry.bundled)
        self.download.setVisible(entry.release is not None)
        self._vocoders.setVisible(entry.has_separate_vocoder and not missing)
        elsewhere, usual, can = chosen.vocoder(entry.id), f"{entry.vocoder}, its usual folder", self.can
        can["choose_vocoder"].set_tip(f"Load the model with the vocoder in another folder (now {elsewhere or usual})")
        can["usual_vocoder"].set_tip(f"Load the model with the vocoder in {usual}")
        can["usual_vocoder"].set_reason("" if elsewhere else "The model has its usual vocoder.")
        self._confirm.setVisible(other)
        self.load.setVisible(not missing)
        can["load"].set_tip(f"Load {entry.title} (Enter)")
        can["keep"].setText(f"&Keep {chosen.entry.title}")
        can["keep"].set_tip(f"Choose {chosen.entry.title} again, which stays in use")
        details = ""
        if missing:
            note = (
                f"{entry.title} does not come with Paretone (licence of the weights: {entry.licence}). "
                f"Choose the folder of its checkpoint{', or download it' if entry.release else ''}."
            )
        elif info is None and chosen.loading and not other:
            note = f"Loading {entry.title}…"
        elif other or info is None:
            note = entry.summary
        else:
            note = (
                f"{fixed(info.parameters / 1e6, 1)} M parameters · {info.layers} layers · {info.precision} · "
                f"licence {info.licence}"
            )
            details = f"{info.checkpoint}\nSHA-256 {info.fingerprint}"
        self.note.setText(note)
        # What is usual is in the tooltip: the panel has to fit. The header says what loads, so that nothing moves here.
        self.note.setVisible(other or (info is None and not chosen.loading))
        self.box.setToolTip("\n".join(filter(None, (note, details))))


OWN = "Use a recording of 3 to 12 seconds and its exact words"
OWN_RELEASED = "Use a released recording; its latents (.npy) must be in the same folder, with the same name"
HEARD = "The model transcribes the recording itself."


class VoiceChoice(QWidget):
    problem = Signal(str)
    """Why a recording cannot be used, or a remark on the one in use."""

    def __init__(self, state: AppState) -> None:
        super().__init__()
        self._state = state
        self._edited: Voice | None = None
        """The recording whose name and transcript are being edited; ``None`` while one is being added."""
        self._proposed = ""  # Name derived from the recording's, until the user types another.
        self._asked = 0  # Number of the last check; findings of earlier checks are ignored.
        self._doubted: tuple[str, str] | None = None
        """Path and transcript that raised doubts; used if the user asks again."""
        self.voice = build.narrow(build.named(ComboBox(), "Voice"), 18)
        self.voice.activated.connect(lambda: state.editing.choose_voice(self.voice.currentData()))
        self.own = build.button("O&wn…", name="Own recording")
        self.own.setCheckable(True)
        self.own.toggled.connect(self._begin_adding)
        self.note = build.words("warning")
        self.edit = build.button("Edit…", tip="Change the name or the transcript of this recording")
        self.edit.setCheckable(True)
        self.edit.toggled.connect(self._begin_editing)
        self.remove = build.button(
            "Remove", self._remove, "Take this recording out of the list (Ctrl+Z brings it back); its file stays"
        )
        self._changes = build.row(self.edit, self.remove)
        self.form = self._built_form()
        voice = build.row(build.title_of("Voice", self.voice), (self.voice, 1), self.own)
        build.fill(VBoxLayout(self), [voice, self.note, self._changes, self.form]).setSpacing(NEAR)

    def _built_form(self) -> QWidget:
        recording = QLineEdit(placeholderText="Recording (WAV, FLAC, …)")
        self.recording = build.named(recording, "Path of your own recording")
        self.recording.editingFinished.connect(self._look_at_recording)
        self._browse = build.button(
            "&Browse…",
            lambda: file_dialogs.ask_for_file(self, "Your recording", file_dialogs.recordings(), self.propose),
        )
        self.name = build.named(QLineEdit(placeholderText="Name"), "Name of your own voice")
        transcript = QLineEdit(placeholderText="Transcript, word for word")
        self.transcript = build.named(transcript, "Transcript of your own recording")
        for line in (self.recording, self.transcript):
            line.textEdited.connect(self._forget_findings)
        self.findings = build.words("muted", name="Findings on your own recording")
        self.checking = build.label("Checking the recording…", look="muted")
        self.use_recording = build.button("Use th&is recording", self._use)
        made = QWidget(visible=False)
        file = build.row((self.recording, 1), self._browse)
        parts = [file, self.name, self.transcript, self.checking, self.findings, self.use_recording]
        build.fill(VBoxLayout(made), parts).setSpacing(NEAR)
        return made

    def shut_down(self) -> None:
        self._asked += 1
        for worker in self.findChildren(Background):
            worker.shut_down(wait=False)

    def show_model(self) -> None:
        takes = self._state.selection.entry.voices
        released = takes.latents
        self.own.setVisible(takes.named is None)
        if takes.named is not None:
            self.own.setChecked(False)
        self.transcript.setVisible(not released)
        self.own.setToolTip(OWN_RELEASED if released else OWN)

    def show_choice(self) -> None:
        chosen = self._state.selection
        listed = [(one.title, one.id) for one in chosen.voices]
        if listed != [(self.voice.itemText(index), self.voice.itemData(index)) for index in range(self.voice.count())]:
            build.offer(self.voice, listed, None)
        if chosen.voice is not None:
            self.voice.setCurrentIndex(self.voice.findData(chosen.voice.id))
            without = HEARD if chosen.entry.voices.latents else "No transcript yet."
            said = f"“{chosen.voice.transcript}”" if chosen.voice.transcript else without
            audio = chosen.voice.audio
            if not audio:
                said = ""  # One of the model's own.
            gone = f"The recording {audio} is missing." if audio and not Path(audio).is_file() else ""
            problem = gone or self._state.availability.why_not_in_voice()
            self.note.setText(problem or said)
            self.voice.setToolTip(said)
        else:
            problem = self._state.availability.why_no_voice()
            self.note.setText(problem)
        self.note.setVisible(bool(problem))
        own = self._state.own_voices.chosen
        self._changes.setVisible(own is not None)
        if self._edited is not None and self._edited != own:
            self.edit.setChecked(False)

    # --- Adding and changing ----------------------------------------------------------------------------------------
    def propose(self, path: Path) -> None:
        """Fill in the recording at ``path``; the user types the rest."""
        self.own.setChecked(True)
        self.recording.setText(str(path))
        self.transcript.clear()
        self._forget_findings()
        self._look_at_recording()
        (self.use_recording if self._state.selection.entry.voices.latents else self.transcript).setFocus()

    def _begin_adding(self, adding: bool) -> None:
        if adding:
            self.edit.setChecked(False)
            self._open(None)
        elif self._edited is None:
            self.form.hide()

    def _begin_editing(self, editing: bool) -> None:
        own = self._state.own_voices.chosen
        if editing and own is not None:
            self.own.setChecked(False)
            self._open(own)
        elif not editing and self._edited is not None:
            self._edited = None
            self.form.hide()

    def _open(self, edited: Voice | None) -> None:
        self._edited = edited
        self.recording.setText(edited.audio if edited else "")
        self.name.setText(edited.title if edited else "")
        self.transcript.setText(edited.transcript if edited else "")
        for part in (self.recording, self._browse):
            part.setEnabled(edited is None)
        self._forget_findings()
        self.form.show()
        (self.name if edited else self.recording).setFocus()

    def _remove(self) -> None:
        own = self._state.own_voices.chosen
        if own is not None:
            self._state.own_voices.remove(own)

    def _look_at_recording(self) -> None:
        """Propose a name, and say at once if the file cannot be used."""
        path = Path(self.recording.text().strip())
        self._propose_name(path)
        if self._edited is None and path.is_file():
            self._check(str(path), "")

    def _propose_name(self, path: Path) -> None:
        if self._edited is None and path.name and self.name.text().strip() in ("", self._proposed):
            self._proposed = self._state.own_voices.free_name(path.stem)
            self.name.setText(self._proposed)

    def _use(self) -> None:
        chosen, path = self._state.selection, self.recording.text().strip()
        transcript = " ".join(self.transcript.text().split())
        self._propose_name(Path(path))
        if not Path(path).is_file():
            self._refuse(f"No recording at “{path}”; choose an audio file with Browse.")
        elif not transcript and not (chosen.entry.voices.latents or chosen.entry.voices.wordless):
            self._refuse("The transcript is missing: type the words spoken in the recording.")
        elif reason := chosen.voice_problem(path, transcript):
            self._refuse(reason)
        elif (self._edited and transcript == self._edited.transcript) or self._doubted == (path, transcript):
            self._accept(path, transcript)  # Another name needs no check.
        else:
            self._check(path, transcript, use=True)

    def _refuse(self, sentence: str) -> None:
        self._forget_findings()  # Also those of a running check, which would replace this sentence.
        self._say(sentence, "warning")
        self.problem.emit(sentence)

    # --- Checks -----------------------------------------------------------------------------------------------------
    def _check(self, path: str, transcript: str, use: bool = False) -> None:
        self._asked += 1
        number, self._doubted = self._asked, None
        self._say(f"Checking {Path(path).name}…", "muted")
        self.checking.show()
        self.use_recording.setEnabled(not use)

        def check() -> None:
            if number != self._asked:
                raise Cancelled

        def done(found: Examined | BaseException) -> None:
            worker.shut_down(wait=False)
            worker.deleteLater()
            if number != self._asked:
                return
            self.checking.hide()
            self.use_recording.setEnabled(True)
            if isinstance(found, BaseException):
                raise found
            self._conclude(found, path, transcript, use)

        worker = Background("recordings", self)
        shortened = self._state.selection.entry.voices.shortened
        worker.run(lambda: examine(path, transcript, shortened, check), done)

    def _conclude(self, found: Examined, path: str, transcript: str, use: bool) -> None:
        if found.problem:
            self._refuse(found.problem)
        elif found.doubts and use:
            self._doubted = path, transcript
            sentence = " ".join((*found.doubts, *found.notes))
            self._say(sentence, "warning")
            announce(self, sentence)
            self.use_recording.setText("Use &it anyway")
        else:
            sentence = " ".join(found.notes)
            self._say(sentence, "warning" if sentence else "muted")
            if use:
                self._accept(path, transcript)
                if sentence:  # The form that shows it is hidden now.
                    self.problem.emit(sentence)

    def _accept(self, path: str, transcript: str) -> None:
        own, name = self._state.own_voices, self.name.text()
        if self._edited is not None:
            own.change(self._edited, name, transcript)
        else:
            made = own_voice(path, transcript)
            own.add(Voice(made.id, name.strip() or made.title, made.audio, transcript))
        self._edited = None
        self.own.setChecked(False)
        self.edit.setChecked(False)
        self.form.hide()

    def _forget_findings(self) -> None:
        self._asked, self._doubted = self._asked + 1, None
        self.checking.hide()
        self.use_recording.setEnabled(True)
        self.use_recording.setText("Use th&is recording" if self._edited is None else "&Save changes")
        self._say("", "muted")

    def _say(self, sentence: str, look: str) -> None:
        self.findings.setText(localised(sentence))
        self.findings.setVisible(bool(sentence))
        set_look(self.findings, look)
