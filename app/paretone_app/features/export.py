"""Export dialogs: profiles (the setting with its evidence) and weights, in a chosen format and place."""

import os
import shlex
from collections.abc import Callable, Sequence
from html import escape
from pathlib import Path

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QDialog, QDialogButtonBox, QLabel, QLineEdit, QTextBrowser, QWidget

from paretone import files
from paretone.errors import PlainError
from paretone.export.accounts import Account, Line
from paretone.export.targets import Target, account, target, targets
from paretone.models import catalogue
from paretone.models.base import DraftWeights, ModelInfo, StudentWeights, TrainedWeights
from paretone.session.commands import ExportProfile, ExportWeights
from paretone.session.events import Event, ProfileExported, WeightsExported
from paretone.setting.knobs import NO_VALUES, Values
from paretone.setting.profile import SUFFIX, Evidence, Profile
from paretone.setting.setting import Setting
from paretone.setting.take import AnyTake
from paretone.techniques import techniques
from paretone.techniques.base import Technique
from paretone_app.features.presenter import Part, Presenter, Services
from paretone_app.numbers import fixed, percent, significant
from paretone_app.shell import file_dialogs
from paretone_app.state.app_state import AppState
from paretone_app.state.availability import require
from paretone_app.state.differences import option_words, technique_text, weights_title
from paretone_app.state.jobs import Kind
from paretone_app.widgets import build
from paretone_app.widgets.layouts import FormLayout


class ProfileExport:
    """Builds profiles of the selection and exports them."""

    def __init__(self, state: AppState, takes_with: Callable[[Setting], Sequence[AnyTake]] = lambda _: ()) -> None:
        self._state, self._takes_with = state, takes_with

    @property
    def evidence(self) -> tuple[AnyTake | None, AnyTake | None]:
        """The take whose figures the profile quotes, and its baseline; see :meth:`Comparison.made_with`."""
        setting, weights = self._state.selection.setting, self._state.selection.loaded.all_weights
        return self._state.comparison.made_with(setting, weights, self._takes_with(setting))

    def profile(self, quotes: bool = True) -> Profile:
        """The selected setting with artefact and, if it ``quotes`` one, evidence, for which studies are read. Raises
        :class:`PlainError` if it cannot be exported."""
        state = self._state
        require(state.availability.why_not_export())
        setting, (take, baseline) = state.selection.setting, self.evidence if quotes else (None, None)
        evidence = Evidence.of(take, baseline) if take is not None else None
        return Profile.of(setting, state.selection.loaded, state.artefacts.of(setting), evidence)

    def account(self, target: Target) -> Account:
        """What ``target`` honours and drops of the profile, or why it cannot take it."""
        try:
            profile = self.profile(quotes=False)  # Asked with every letter of a path.
        except PlainError as error:
            return Account(why_not=str(error))
        info = self._state.selection.info
        return account(target, profile, info is not None and info.trained_guidance is not None)

    def export(self, target: Target, folder: Path) -> None:
        """Have the engine export the profile to ``target``. Raises :class:`PlainError` when it cannot be done."""
        require(self.account(target).why_not)
        profile, checkpoint = self.profile(), self._state.selection.model_folder
        self._state.jobs.start(
            Kind.EXPORT, lambda job: ExportProfile(job, profile, target.name, str(folder), checkpoint)
        )


def technique_of(weights: TrainedWeights, info: ModelInfo) -> Technique | None:
    return next((one for one in techniques() if one.weights is not None and weights in one.weights.all_of(info)), None)


def _list(title: str, lines: tuple[Line, ...]) -> str:
    """HTML list; lines with the same reason are merged."""
    if not lines:
        return f"<p><b>{title}</b>: nothing</p>"
    together: dict[str, list[str]] = {}
    for line in lines:
        together.setdefault(line.how, []).append(line.subject)
    items = "".join(f"<li>{escape(', '.join(named))}: <i>{escape(how)}</i></li>" for how, named in together.items())
    return f"<p><b>{title}</b></p><ul>{items}</ul>"


_KIND = "export"


class DestinationDialog(QDialog):
    """Subclasses add rows to ``form`` and then call :meth:`finish`. Opened with ``open()``; never blocks the window."""

    def __init__(self, title: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle(title)
        self.form = FormLayout()
        self.path = QLineEdit()
        self.summary, self.note = build.words("muted"), build.words("warning")

    def problem(self) -> tuple[str, str]:
        """Why the typed path is invalid, and a remark on it, as sentences or ``""``."""
        raise NotImplementedError

    def export(self) -> None:
        raise NotImplementedError

    def browse(self) -> None:
        file_dialogs.ask_for_folder(self, self.windowTitle(), self.take, self.typed)

    def finish(self, label: str) -> None:
        """Add the path field (titled ``label``), the note and the buttons below ``form``."""
        browse = build.button("&Browse…", self.browse)
        browse.setAutoDefault(False)
        self.path_label = build.title_of(label, self.path)
        self.form.addRow(self.path_label, build.row((self.path, 1), browse))
        buttons = build.above_close(self, self.form, self.note, cancels=True)
        self.export_button = buttons.addButton("&Export", QDialogButtonBox.ButtonRole.AcceptRole)
        self.export_button.setProperty("look", "primary")
        buttons.accepted.connect(self.export)
        self.setMinimumWidth(self.fontMetrics().height() * 34)
        self.export_button.setDefault(True)
        self.path.textChanged.connect(self.check)
        self.path.setFocus()

    def check(self) -> None:
        problem, remark = self.problem()
        self.export_button.setEnabled(not problem)
        self.note.setText(problem or remark)
        layout = self.layout()
        if layout is not None and self.isVisible():  # Qt lets wrapped lines overlap what is below.
            self.resize(self.width(), max(self.height(), layout.totalMinimumHeightForWidth(self.width())))

    @property
    def typed(self) -> str:
        return os.path.expanduser(self.path.text().strip())

    def take(self, path: Path) -> None:
        self.path.setText(str(path))

    def proposed(self, name: str) -> str:
        return str(file_dialogs.last_folder(self, _KIND) / name)

    def accept(self) -> None:
        file_dialogs.note_folder(self, _KIND, Path(self.typed).parent)
        super().accept()


def folder_problem(text: str) -> tuple[str, str]:
    """Why the typed folder is invalid, and a remark on it, as sentences or ``""``."""
    if not text:
        return "Type a folder.", ""
    path = Path(text).absolute()
    try:
        if path.exists() and not path.is_dir():
            return f"{path} is a file; choose a folder.", ""
        if path.is_dir() and next(path.iterdir(), None) is not None:
            return "", f"{path.name} is not empty: existing files stay and are not overwritten."
        return "", "" if path.is_dir() else f"The folder {path} will be created."
    except OSError as error:
        return f"{path} cannot be read: {files.reason(error)}.", ""


class ProfileDialog(DestinationDialog):
    """Shows the profile's content and asks for target and path. A profile for Paretone is written at once; the other
    targets are jobs of the engine."""

    written = Signal(str)

    def __init__(self, state: AppState, export: ProfileExport, parent: QWidget | None = None) -> None:
        super().__init__("Export profile", parent)
        self._state, self._export = state, export
        for title, text in self._contents():
            self.form.addRow(title, build.label(text, wrapped=True, selectable=True))
        self.target = build.combo("Target", (("Paretone", None), *((one.title, one.name) for one in targets())))
        name = "-".join([state.selection.model_id, *(one.technique for one in state.selection.setting.techniques)])
        proposals = f"{name}{SUFFIX}", *(f"{name}-for-{one.name}" for one in targets())
        self._paths = [self.proposed(one) for one in proposals]
        self.target.currentIndexChanged.connect(self._show_target)
        self.form.addRow("Fo&r", self.target)
        self.form.addRow("", self.summary)
        self.account = build.named(QTextBrowser(), "Dropped and honoured")
        self.account.setTabChangesFocus(True)
        self.account.setFixedHeight(11 * self.account.fontMetrics().lineSpacing())
        lists = "p { margin: 2px 0 } ul { margin: 0 0 0 14px; -qt-list-indent: 0 }"
        self.account.document().setDefaultStyleSheet(lists)
        self.form.addRow(self.account)
        self.finish("&File")
        self._show_target(0)

    @property
    def _chosen(self) -> Target | None:
        """The chosen engine target; ``None`` for a profile for Paretone."""
        index = self.target.currentIndex()
        return targets()[index - 1] if index > 0 else None

    def _contents(self) -> list[tuple[str, str]]:
        state = self._state
        info = state.selection.info
        rows = []
        if info is not None:
            rows.append(("Model", f"{info.title}, {info.variant}, SHA-256 {info.fingerprint[:16]}…"))
        rows.append(("Setting", f"{technique_text(state.selection.setting)}, seed {state.selection.seed}"))
        rows.append(("Sampler", ", ".join(option_words(state.selection.entry, state.selection.options_in_force))))
        sources = (state.artefacts.source(one.technique) for one in state.selection.setting.techniques)
        rows.extend(one.origin for one in sources if one is not None and one.origin is not None)
        if (take := self._export.evidence[0]) is None:
            rows.append(("Evidence", "none: synthesise this setting first"))
        else:
            measured = take.measurements
            text = f"RTF {significant(measured.real_time_factor)} on {measured.device}, "
            text += f"{percent(measured.ops_ratio)} of the operations"
            if take.log_mel_distance is not None:
                text += f", log-mel distance {fixed(take.log_mel_distance, 3)}"
            rows.append(("Evidence", f"{text}; {take.machine}" if take.machine else text))
        return rows

    def _show_target(self, index: int) -> None:
        chosen = self._chosen
        holds = f"a folder with {chosen.summary}" if chosen else "one file for the application and the command line"
        self.summary.setText(f"Writes {holds}.")
        # Paretone's own profile leaves nothing out. A target's reason for refusing has its place below the path.
        account = self._export.account(chosen) if chosen else Account()
        self.account.setVisible(chosen is not None and not account.why_not)
        # What is dropped comes first: it must not be missed.
        self.account.setHtml(_list("Dropped", account.drops) + _list("Honoured", account.honours))
        self.path_label.setText("&Folder" if chosen else "&File")
        self.path.setAccessibleName("Folder to write to" if chosen else "File of the profile")
        self.path.setText(self._paths[index])
        self.path.selectAll()
        self.check()

    def browse(self) -> None:
        if self._chosen is None:
            title = self.windowTitle()
            file_dialogs.ask_where_to_write(self, title, "Profile (*.json)", Path(self.typed), self.take)
        else:
            super().browse()

    def problem(self) -> tuple[str, str]:
        self._paths[self.target.currentIndex()] = self.path.text()
        if self._chosen is not None:
            reason = self._export.account(self._chosen).why_not
            return (reason, "") if reason else folder_problem(self.typed)
        path = Path(self.typed)
        if not self.typed:
            return "Type a file name.", ""
        try:
            if not path.parent.is_dir():
                return f"The folder {path.parent} does not exist.", ""
            if path.is_dir():
                return f"{path} is a folder.", ""
            return "", f"{path.name} exists and will be replaced." if path.exists() else ""
        except OSError as error:
            return f"{self.path.text()} cannot be read: {files.reason(error)}.", ""

    def export(self) -> None:
        path, target = Path(self.typed), self._chosen
        try:
            if target is None:
                self._export.profile().save(path)
            else:
                self._export.export(target, path)
        except PlainError as error:
            self.note.setText(str(error))
            return
        self.accept()
        if target is None:
            self.written.emit(str(path))


STUDENT, DRAFT = "student", "draft"
_OFFICIAL = "weights and their configuration, which replace the release's: the official class then has these layers."
_HUGGING_FACE = "a Hugging Face checkpoint: AutoModelForCausalLM.from_pretrained loads it."


class WeightsDialog(DestinationDialog):
    wanted = Signal(str, str, str)
    """Export weights: kind, source file, destination folder."""

    def __init__(self, info: ModelInfo, parent: QWidget | None = None) -> None:
        super().__init__("Export student or draft", parent)
        self._info = info
        self._offered = ""
        """The last folder that was proposed; the user's own stays."""
        self._found: tuple[StudentWeights | DraftWeights, ...] = (*info.students, *info.drafts)
        self.weights = build.combo("Weights", [(weights_title(one), one.path, one.path) for one in self._found])
        self.path.setAccessibleName("Folder to write to")
        self.form.addRow("Model", QLabel(f"{info.title}, {info.layers} layers"))
        self.form.addRow("&Weights", self.weights)
        self.form.addRow("", self.summary)
        self.finish("&Folder")
        self.weights.currentIndexChanged.connect(self._show)
        self._show()

    @property
    def _chosen(self) -> StudentWeights | DraftWeights:
        return self._found[self.weights.currentIndex()]

    def _show(self) -> None:
        """Describe the chosen weights, and propose a folder unless the user has chosen one."""
        chosen = self._chosen
        layers = ", ".join(map(str, chosen.retained))
        runs = technique_of(chosen, self._info) if _kind(chosen) == DRAFT else None
        settings = f" {runs.title.partition(' (')[0]}'s current settings are included." if runs is not None else ""
        exports = catalogue.entry(self._info.id).exports
        holds = _OFFICIAL if exports is not None and exports.official else _HUGGING_FACE
        self.summary.setText(f"Layers {layers}. The folder will hold {holds}{settings}")
        if self.path.text() == self._offered:
            self._offered = self.proposed(f"{self._info.id}-{_kind(chosen)}-{len(chosen.retained)}")
            self.path.setText(self._offered)
            self.path.selectAll()
        self.check()

    def problem(self) -> tuple[str, str]:
        return folder_problem(self.typed)

    def export(self) -> None:
        chosen = self._chosen
        self.accept()
        self.wanted.emit(_kind(chosen), chosen.path, self.typed)


def _kind(weights: StudentWeights | DraftWeights) -> str:
    return STUDENT if isinstance(weights, StudentWeights) else DRAFT


class ExportPresenter(Presenter):
    written = Signal(str)

    def __init__(self, services: Services) -> None:
        super().__init__(services)
        self._exported: tuple[Setting, str] | None = None
        """Setting and voice of the last exported profile."""
        self._export = ProfileExport(services.state, services.results.takes_with)
        actions, available = services.actions, services.state.availability
        actions.bind(actions.export_profile, self._ask_about_profile, available.why_not_export)
        actions.bind(actions.export_weights, self._ask_which_weights, self.why_no_weights)

    def step_done(self, action: str) -> bool:
        return self._exported is not None and self._exported == self._exporting

    def step_changed(self, action: str) -> bool:
        return self._exported is not None

    def tour_parts(self, stop: str) -> Sequence[Part | str]:
        return ("export_profile",)

    @property
    def _exporting(self) -> tuple[Setting, str]:
        chosen = self._state.selection
        return chosen.setting, chosen.voice.id if chosen.voice is not None else ""

    def why_no_weights(self) -> str:
        """Why the loaded model has no student or draft to write, as a sentence, or ``""``."""
        if reason := self._state.selection.why_not_ready():
            return reason
        info = self._state.selection.loaded
        if not info.students and not info.drafts:
            return f"{info.title} has no student or draft to export; train one in the Training panel."
        return ""

    def follow(self, event: Event) -> None:
        if isinstance(event, ProfileExported):
            how = " Its README.md explains how to use it." if "README.md" in event.files else ""
            self._done(event.folder, f"{event.folder} holds {target(event.target).summary}.{how}")
        elif isinstance(event, WeightsExported):
            self._notices.note(f"Wrote {event.folder}")
            said = f"The {event.kind} {Path(event.source).stem} is in {event.folder}: {', '.join(event.files)}."
            self._notices.say(said, "info")

    def write(self, path: Path) -> None:
        """Export the present setting to ``path`` without asking. Raises :class:`PlainError` when it cannot be done."""
        self._export.profile().save(path)
        self._tell(str(path))

    def _ask_about_profile(self) -> None:
        dialog = ProfileDialog(self._state, self._export, self._window)
        dialog.written.connect(self._tell)
        build.show(dialog)

    def _ask_which_weights(self) -> None:
        require(self.why_no_weights())
        dialog = WeightsDialog(self._state.selection.loaded, self._window)
        dialog.wanted.connect(self._export_weights)
        build.show(dialog)

    def _export_weights(self, kind: str, file: str, folder: str) -> None:
        """Write weights; a draft with the current knobs of the technique that runs it, except those that select it."""
        state, chosen, settings = self._state, self._state.selection, NO_VALUES
        draft = next((one for one in chosen.loaded.drafts if one.path == file), None)
        runs = technique_of(draft, chosen.loaded) if draft is not None else None
        if runs is not None and runs.weights is not None:
            choosing = runs.weights.knobs_of(draft)
            settings = Values({name: value for name, value in chosen.knobs(runs.name).items() if name not in choosing})
        model, place = chosen.model_id, chosen.model_folder
        state.jobs.start(Kind.EXPORT, lambda job: ExportWeights(job, model, kind, file, folder, settings, place))

    def _tell(self, path: str) -> None:
        place = self._state.selection.model_folder
        folder = f" --folder {shlex.quote(place)}" if place else ""
        command = f"paretone speak --profile {shlex.quote(path)}{folder} --text “…” --out out.wav"
        self._done(path, f"The profile is in {path}. Run it: {command}")

    def _done(self, path: str, sentence: str) -> None:
        self._exported = self._exporting
        self._notices.note(f"Wrote {path}")
        self._notices.say(sentence, "info")
        self.written.emit(path)
        self.changed.emit()
