"""The dialog for a new study: what is compared, on what, judged by whom; every combination, or a search."""

import os
from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtWidgets import QCheckBox, QDialog, QDialogButtonBox, QLabel, QLineEdit, QPushButton, QWidget

from paretone.errors import PlainError
from paretone.extras import SEARCH
from paretone.measure.evaluation.judges import JUDGES
from paretone.models import catalogue
from paretone.models.base import Voice
from paretone.models.declaration import Model
from paretone.techniques import applying_to, changed_options
from paretone_app.features.studies import forms
from paretone_app.features.studies.fields import USUAL_JUDGES, AxesEditor, GoalsEditor, JudgeBoxes, ServersEditor
from paretone_app.shell import file_dialogs
from paretone_app.shell.theme import BROAD, NEAR, set_look
from paretone_app.state.differences import option_words
from paretone_app.state.machine import Installing, Machine
from paretone_app.state.selection import Selection
from paretone_app.widgets import build
from paretone_app.widgets.action import Action, ActionButton
from paretone_app.widgets.boxes import ComboBox, SpinBox, entry
from paretone_app.widgets.layouts import FormLayout, HBoxLayout, Scrolled, VBoxLayout
from paretone_app.widgets.panel_parts import InstallOffer, TickList

EVERY = "every"
"""Choices of settings: every combination, or a search; features of techniques add others."""
_LISTS = (("Harvard sentences", "harvard"), ("Everyday sentences", "unseen"), ("Demonstration sentences", "demo"))
_OWN, _SET = "own", "set"
TOML = "Study (*.toml)"


class StudyMaker(QDialog):
    """Opened with ``open()``; never blocks the window. Initialised from Setup."""

    definition_changed = Signal(object)
    """Another definition to check and count; answer with :meth:`show_verdict`."""
    submitted = Signal(object, object, bool)
    """Write this definition to this path, and optionally run the study."""

    def __init__(
        self,
        selection: Selection,
        machine: Machine,
        folder: Path,
        kinds: Sequence[forms.OfferedKind] = (),
        parent: QWidget | None = None,
    ) -> None:
        """``folder``: proposed for files; ``kinds``: further kinds of studies."""
        super().__init__(parent)
        self._selection, self._setting, self._folder = selection, selection.setting, folder
        self._machine = machine
        self._own = tuple(selection.own_voices)
        self._offered: tuple[Voice, ...] = ()  # Voices in the list.
        self._ticked = {selection.voice} if selection.voice is not None else set()
        """Ticked voices, including those that the chosen model lacks."""
        self._kinds = {one.kind.name: one for one in kinds}
        self.definition: dict[str, object] | None = None
        """The checked definition; ``None`` until checked."""
        self._proposed = ""
        self._replaced: Path | None = None  # File that the user agreed to replace.
        self.setWindowTitle("New study")
        self._pause = QTimer(self, singleShot=True, interval=250)
        self._pause.timeout.connect(self.check)
        self._build()
        self._show_model()
        self._title_changed()
        self.show_missing()
        # Start with a study that could run as it is.
        there = {name for name, box in self.judges.items() if box.isEnabled()}
        for name in USUAL_JUDGES:
            self.judges[name].setChecked(name in there)
        self.goals.add_usual(there)
        names = [one.name for one in applying_to(self._entry.family, self._entry.options, self._entry.mel_flow)]
        steps = forms.Varied("steps", "steps", "5, 7, 10")
        self.axes.add(steps if "steps" in names else forms.Varied(names[0], "") if names else None)
        self._show_kind()
        self.title.setFocus()
        self.title.selectAll()

    def _build(self) -> None:
        em = self.fontMetrics().height()
        columns = build.fill(HBoxLayout(), ((self._build_material(em), 2), (self._build_comparison(em), 3)))
        columns.insertSpacing(1, BROAD)
        self.path = build.named(QLineEdit(), "File of the study")
        browse = build.button("…", self._ask_where, name="Choose the file of the study")
        self.verdict = build.words(name="Size of the study")
        self.verdict.setMinimumHeight(int(2.6 * em))
        file = build.row(build.title_of("&File", self.path), (self.path, 1), browse)
        buttons = build.above_close(self, (columns, 1), file, self.verdict, cancels=True)
        self._save_action = Action("&Save", "Write the study's file", parent=self)
        self._start_action = Action("Save a&nd start", "Write the study's file, and run the study", parent=self)
        self._save_action.triggered.connect(lambda: self._save(start=False))
        self._start_action.triggered.connect(lambda: self._save(start=True))
        self.save_button = ActionButton(self._save_action)
        self.start_button = ActionButton(self._start_action, look="primary")
        for button in (self.save_button, self.start_button):
            buttons.addButton(button, QDialogButtonBox.ButtonRole.ActionRole)
        for button in self.findChildren(QPushButton):
            # Pressing Enter after typing values must not start hours of work.
            button.setAutoDefault(False)
        self.resize(70 * em, 38 * em)
        self.path.textChanged.connect(self._changed)

    def _build_material(self, em: int) -> FormLayout:
        self.title = QLineEdit("My study")
        self.title.textChanged.connect(self._title_changed)
        self.model = ComboBox()
        for one in catalogue.models():
            self.model.addItem(one.title, one.id)
            item = entry(self.model, one.id)
            installed, place = self._selection.is_installed(one.id), self._selection.place(one.id)[0]
            item.setEnabled(installed)
            item.setToolTip(place or one.summary if installed else f"{one.title} is not installed.")
        self.model.setCurrentIndex(self.model.findData(self._setting.model))
        self.model.currentIndexChanged.connect(self._show_model)
        self.checkpoint = build.words("muted", name="Checkpoint")
        lists = (*_LISTS, ("Text file, one per line", _OWN), ("Evaluation set", _SET))
        self.sentences = build.combo("Sentences", lists)
        self.sentences.currentIndexChanged.connect(self._show_sentences)
        self.text_file = build.named(QLineEdit(placeholderText="sentences.txt"), "Text file")
        self.browse_text = build.button("…", self._ask_for_text, name="Choose the text file")
        self.recordings = build.named(QLineEdit(placeholderText="LibriSpeech/test-clean"), "Folder of recordings")
        self.recordings.setToolTip("For the list of LibriSpeech-PC only; other lists name their recordings")
        self.count = build.named(SpinBox(minimum=0, maximum=100_000, value=5, prefix="First "), "How many sentences")
        self.count.setSpecialValueText("all of them")
        self._own_row = build.fill(HBoxLayout(), ((self.text_file, 1), self.browse_text))
        self.voices = TickList("Voices")
        self.voices.setMaximumHeight(5 * em)
        self.seeds = build.named(QLineEdit("0"), tip="Example: 0, 1, 2 or 0..4; “paper” for 42, 3407, 666, 3954, 3962")
        rounds = SpinBox(minimum=1, maximum=100, value=1)
        self.rounds = build.named(rounds, tip="Speed measurements per take, interleaved with the others")
        self._judge_boxes = JudgeBoxes(self._machine)
        self._judge_boxes.changed.connect(self._changed)
        self.judges = self._judge_boxes.boxes
        self.install_search = InstallOffer()
        self._form = form = FormLayout()
        for title, field in (
            ("&Title", self.title),
            ("&Model", self.model),
            ("", self.checkpoint),
            ("S&entences", self.sentences),
            ("", self._own_row),
            ("", self.recordings),
            ("", self.count),
            ("&Voices", self.voices),
            ("See&ds", self.seeds),
            ("&Rounds", self.rounds),
        ):
            form.addRow(title, field)
        form.addRow(build.title_of("&Judges", self.judges[JUDGES[0].name]), self._judge_boxes)
        for edit in (self.text_file, self.recordings, self.seeds):
            edit.textChanged.connect(self._changed)
        for spin in (self.count, self.rounds):
            spin.valueChanged.connect(self._changed)
        self.voices.itemChanged.connect(self._note_voices)
        return form

    def _build_comparison(self, em: int) -> VBoxLayout:
        further = ((one.kind.title, name) for name, one in self._kinds.items())
        kinds = ("Try every combination", EVERY), ("Search for the best", SEARCH), *further
        self.kind = build.combo("Choice of settings", kinds)
        self.kind.currentIndexChanged.connect(self._show_kind)
        self.no_search = build.words("muted")
        self.goals = GoalsEditor()
        self.goals.changed.connect(self._changed)
        self.axes = AxesEditor(self._setting.model)
        self.axes.changed.connect(self._changed)
        self.servers = ServersEditor()
        self.servers.changed.connect(self._changed)
        build.fill(VBoxLayout(inside := QWidget()), (self.axes, self.servers, 1), (0, 0, NEAR, 0))
        self.about_kind = QLabel(wordWrap=True, alignment=Qt.AlignmentFlag.AlignTop)
        area = Scrolled(inside)
        area.setMinimumWidth(42 * em)
        hint = build.label(
            "Type values as 4, 8, 12 or as a range such as 4..12 or 0.1..0.5 by 0.1. A search samples a range: "
            "0.05..0.5, or 0.05..0.5 log for a logarithmic scale. The baseline is always included.",
            "muted",
            wrapped=True,
        )
        self.selected = QCheckBox("Include the setting of Set&up")
        self.options = QCheckBox("Sampler &options as in Setup")
        for box in (self.selected, self.options):
            box.toggled.connect(self._changed)
        varied = QLabel("Parameters")
        self._varying = varied, area, hint, self.selected
        above = self.kind, self.no_search, self.install_search, self.goals, varied
        below = hint, (self.about_kind, 1), self.selected, self.options
        build.fill(column := VBoxLayout(), (*above, (area, 1), *below))
        return column

    def follow(self, installing: Installing) -> None:
        for offer in (self._judge_boxes.install, self.install_search):
            offer.follow(installing)
        installing.changed.connect(self.show_missing)
        self.show_missing()

    def show_missing(self) -> None:
        self._judge_boxes.show_missing()
        no_search, item = self._machine.problem_of(SEARCH), entry(self.kind, SEARCH)
        item.setEnabled(not no_search)
        item.setToolTip(no_search or "Each setting is proposed from the results so far")
        self.no_search.setText(no_search)
        self.no_search.setVisible(bool(no_search))
        self.install_search.offer(no_search)

    def ask_within(self, within: forms.Within) -> None:
        """Fill in a study within ranges: a search, or all values if the search packages are missing."""
        searching = not self._machine.problem_of(SEARCH)
        self.title.setText("Within ranges")
        self.title.selectAll()
        self.model.setCurrentIndex(self.model.findData(within.model))
        if searching:
            self.kind.setCurrentIndex(self.kind.findData(SEARCH))
        self.axes.replace([one.varied(searching) for one in within.spans])
        self.goals.bounds.replace(within.bounds)

    def choose_kind(self, name: str, sentences: int) -> None:
        """Fill in a study of a further kind on a number of sentences, with only the judges it needs."""
        kind = self._kinds[name].kind
        self.kind.setCurrentIndex(self.kind.findData(name))
        for judge, box in self.judges.items():
            box.setChecked(judge in kind.judges and box.isEnabled())
        self.count.setValue(sentences)
        self.title.setText(kind.proposal.format(model=self._entry.title))
        self.title.selectAll()

    def check(self) -> None:
        self._pause.stop()
        try:
            self.definition = forms.definition(self.form)
        except PlainError as error:
            self.definition = None
            self.show_verdict(str(error), ok=False)
            return
        self.definition_changed.emit(self.definition)

    def show_verdict(self, text: str, ok: bool) -> None:
        """``text``: size of the study, or why it is not possible."""
        self.verdict.setText(text)
        set_look(self.verdict, "" if ok else "warning")
        self._allow_saving("" if ok else text)

    def _allow_saving(self, reason: str) -> None:
        for action in (self._save_action, self._start_action):
            action.set_reason(reason)

    @property
    def form(self) -> forms.StudyForm:
        chosen, model = self.sentences.currentData(), self.model.currentData()
        same_model = model == self._setting.model
        place, variant = self._selection.place(model)
        device = self._selection.device_wanted
        return forms.StudyForm(
            title=self.title.text(),
            model=model,
            folder=str(Path(place).absolute()) if place else "",
            variant=variant,
            device="" if device == "auto" else device,
            vocoder=self._selection.vocoder(model),
            sentences=self.text_file.text().strip() if chosen in (_OWN, _SET) else chosen,
            evaluates=chosen == _SET,
            recordings=self.recordings.text().strip(),
            count=self.count.value(),
            voices=self.voices.ticked,
            seeds=self.seeds.text(),
            rounds=self.rounds.value(),
            judges=tuple(name for name, box in self.judges.items() if box.isChecked()),
            options=forms.own_options(self._setting) if same_model and self.options.isChecked() else {},
            varied=self.axes.varied,
            selected=self._setting if same_model and self.selected.isChecked() else None,
            goals=self.goals.filled_in if self.kind.currentData() == SEARCH else None,
            servers=self.servers.filled_in,
            offered=self._kinds.get(self.kind.currentData()),
        )

    @property
    def _entry(self) -> Model:
        return catalogue.entry(self.model.currentData())

    def _changed(self) -> None:
        # The checked definition is outdated.
        self.definition = None
        self._allow_saving("The study is being checked…")
        self._pause.start()

    def _title_changed(self) -> None:
        proposal = str(self._folder / forms.file_name(self.title.text()))
        if self.path.text() in ("", self._proposed):
            self.path.setText(proposal)
        self._proposed = proposal
        self._changed()

    def _show_model(self) -> None:
        model = self.model.currentData()
        place = self._selection.place(model)[0]
        self.checkpoint.setText(f"The checkpoint in {place}")
        self._form.setRowVisible(self.checkpoint, bool(place))
        # Ticked voices stay ticked if possible, and return with the next model that has them.
        problems = {one: catalogue.voice_problem(Path(one.audio), model, place, one.transcript) for one in self._own}
        impossible = {one: problem for one, problem in problems.items() if problem}
        self._offered = (*self._selection.voices_of(model, place), *self._own)
        possible = [one for one in self._offered if one not in impossible]
        ticked = [one for one in possible if one in self._ticked] or possible[:1]
        self.voices.offer(((one.title, one, one in ticked) for one in self._offered), impossible)
        self.axes.offer(model)
        same = model == self._setting.model
        self.selected.setEnabled(same and bool(self._setting.techniques))
        self.selected.setToolTip("" if same else "Setup has another model.")
        for name, one in self._kinds.items():
            item, offered = entry(self.kind, name), same and one.fields is not None
            item.setEnabled(offered)
            item.setToolTip(one.kind.tip if offered else one.kind.missing)
            if not offered and self.kind.currentData() == name:
                self.kind.setCurrentIndex(self.kind.findData(EVERY))
        options = changed_options(self._setting.baseline)
        changed = ", ".join(option_words(catalogue.entry(self._setting.model), options))
        self.options.setEnabled(same and bool(changed))
        self.options.setChecked(same and bool(changed))
        self.options.setToolTip(changed or "All options have their defaults.")
        self._show_sentences()

    def _note_voices(self) -> None:
        """Remember ticks for other models, too."""
        self._ticked = {one for one in self._ticked if one not in self._offered} | set(self.voices.ticked)
        self._changed()

    def _show_sentences(self) -> None:
        chosen = self.sentences.currentData()
        self._form.setRowVisible(self._own_row, chosen in (_OWN, _SET))
        self._form.setRowVisible(self.recordings, chosen == _SET)
        self._form.setRowVisible(self.voices, chosen != _SET)
        self.text_file.setPlaceholderText("seedtts_testset/en/meta.lst" if chosen == _SET else "sentences.txt")
        self._changed()

    def _show_kind(self) -> None:
        further = self._kinds.get(self.kind.currentData())
        self.goals.setVisible(self.kind.currentData() == SEARCH)
        self.about_kind.setText(further.kind.about if further is not None else "")
        self.about_kind.setVisible(further is not None)
        for one in self._varying:
            one.setVisible(further is None)
        self._changed()

    def _ask_for_text(self) -> None:
        kinds = "Evaluation set (*.lst *.csv *.txt)" if self.sentences.currentData() == _SET else "Text (*.txt)"
        file_dialogs.ask_for_file(self, "Sentences", kinds, lambda path: self.text_file.setText(str(path)))

    def _ask_where(self) -> None:
        typed = self.path.text().strip()
        proposal = forms.file_name(self.title.text()) if typed in ("", self._proposed) else Path(typed)
        file_dialogs.ask_where_to_write(self, "Write the study", TOML, proposal, self._choose_file)

    def _choose_file(self, path: Path) -> None:
        """Note the file; the dialog has already asked whether to replace it."""
        self._replaced = path
        self.path.setText(str(path))

    def _save(self, start: bool) -> None:
        path = Path(os.path.expanduser(self.path.text().strip()))
        if self.definition is None:
            return
        if path.suffix != ".toml":
            self.show_verdict("The study's file must end in .toml.", ok=False)
        elif os.path.exists(path) and path != self._replaced:
            self.show_verdict(f"{path} exists; type another name, or choose it with … to replace it.", False)
        else:
            file_dialogs.note_folder(self, "study", path.parent)
            self.submitted.emit(self.definition, path, start)
