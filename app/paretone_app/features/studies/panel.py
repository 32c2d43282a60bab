"""Studies: many settings on many sentences. The panel depends on neither the application's state nor the engine."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from PySide6.QtCore import QSignalBlocker, QSize, Signal
from PySide6.QtGui import QAction, QFontDatabase
from PySide6.QtWidgets import QLineEdit, QMenu, QPlainTextEdit, QPushButton, QSizePolicy, QTabWidget, QWidget

from paretone.session.events import Progress
from paretone.studies.study import BASELINE, Study, duration
from paretone.studies.wording import faulty_takes
from paretone.wording import listed
from paretone_app.features.studies import MOST_RECENT
from paretone_app.features.studies.table import FailuresTable, StudyTable, WorstTable
from paretone_app.numbers import counted, grouped
from paretone_app.results.study import OpenStudy
from paretone_app.shell.colours import Colours
from paretone_app.shell.theme import GAP, NEAR, set_look
from paretone_app.widgets import build
from paretone_app.widgets.action import Action, ActionButton
from paretone_app.widgets.boxes import ComboBox, SpinBox, entry
from paretone_app.widgets.invitation import Invited
from paretone_app.widgets.layouts import VBoxLayout
from paretone_app.widgets.panel_parts import InstallOffer, JobProgress


def plan_words(study: Study, seconds: float | None) -> str:
    counts = {
        "setting": len(study.candidates) + (study.search.trials if study.search else 0),
        "sentence": len({one.text for one in study.utterances}),
        "voice": len({one.voice.id for one in study.utterances}),
        "seed": len(study.seeds),
        "round": study.rounds,
    }
    product = " × ".join(counted(count, name, f"{name}s") for name, count in counts.items())
    listed = study.evaluation.words if study.evaluation else ""
    prepared = sum(bool(one.unprepared) for one in study.candidates)
    # Work other than takes, which progress includes.
    parts = [f"{counted(len(study.utterances), 'recording', 'recordings')} of reference speech"] if study.judges else []
    parts += [counted(prepared, "calibration", "calibrations")] if prepared else []
    further = f"In addition {' and '.join(parts)}." if parts else ""
    alone = study.search is None and {one.origin for one in study.candidates} == {BASELINE}
    own = "No technique is varied, so each setting is its own baseline: speed-up is 1 everywhere." if alone else ""
    words = " ".join(filter(None, (f"{_takes(study.takes)}: {product}.", own, listed, further, _omitted(study))))
    if seconds is None:
        return f"{words} Make one take with this model to get a time estimate."
    return (
        f"{words} About {duration(seconds)}, judging by takes without techniques; calibrating and judging take "
        "longer, techniques less."
    )


def lost_words(summary: OpenStudy) -> str:
    """Sentence saying that the model's folder is gone, or ``""``."""
    return f"The model's folder {summary.lost_folder} is gone: choose where it is now." if summary.lost_folder else ""


def progress_words(summary: OpenStudy) -> str:
    about = "" if summary.seconds is None else f", about {duration(summary.seconds)}"
    if summary.study is None:
        return f"{_takes(summary.made)}. It cannot be run: {summary.file_problem}"
    unknown = "" if summary.seconds is not None else "; the time is known after the first takes"
    if not summary.made and not summary.failures:
        plan = f"{counted(len(summary.rows), 'setting', 'settings')}, {_takes(summary.left)}{about}{unknown}."
        return f"{plan} {_omitted(summary.study)}".strip()
    faults = f"{_faulty(summary)}{_failed(summary)}"
    if summary.left:
        return f"{_takes(summary.made)} finished, {grouped(summary.left)} left{about}.{faults}"
    return f"Finished: {_takes(summary.made)}.{faults} {_omitted(summary.study)}".strip()


def _failed(summary: OpenStudy) -> str:
    """Counts of what failed as a sentence after a space, or ``""``."""
    settings = sum(one.seed is None for one in summary.failures)
    counts = (settings, "setting", "settings"), (len(summary.failures) - settings, "take", "takes")
    failed = [counted(*one) for one in counts if one[0]]
    return f" {listed(failed)} failed, to be tried again: see Failures." if failed else ""


def _faulty(summary: OpenStudy) -> str:
    """Count of faulty takes as a sentence after a space, or ``""`` if none was checked."""
    faulty, takes = faulty_takes(summary.results) if summary.results is not None else (0, 0)
    return f" Faults in {grouped(faulty)} of {_takes(takes)}." if takes else ""


def _omitted(study: Study) -> str:
    if not study.ruled_out:
        return ""
    omitted = counted(len(study.ruled_out), "combination is omitted", "combinations are omitted, the first")
    return f"{omitted} because: {study.ruled_out[0][1]}"


def _takes(count: int) -> str:
    return counted(count, "take", "takes")


HERE, CLUSTER = "here", "cluster"
_INVITATION = (
    "A study runs many settings on many sentences and reports the cost and gain of each, with intervals.\nFinished "
    "takes are kept: after a pause, a crash or a restart it resumes."
)


class StudiesPanel(QWidget):
    """Top: choice of the study, and running it. Below: settings with figures, failures, findings, file."""

    study_chosen = Signal(object)
    """The user chose the study in this folder."""
    recent_chosen = Signal(str)
    """The user chose a recent study, by file or folder."""

    def __init__(self, colours: Colours, can: Mapping[str, Action]) -> None:
        super().__init__()
        self.can = can
        can["pause"].explain(lambda: "It pauses after the current takes." if self._pausing else "")
        for name in ("use", "export"):
            can[name].explain(lambda: "" if self.table.current else "Select a setting in the table first.")
        self.summary: OpenStudy | None = None
        self._running: Path | None = None
        self._pausing = False
        self._said, self._tone = "", "muted"
        self._now = ""
        self._build(colours)
        can["run"].changed.connect(self._show)
        self._show()

    def _build(self, colours: Colours) -> None:
        em = self.fontMetrics().height()
        self.chooser = build.named(ComboBox(), "Study")
        self.chooser.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self.chooser.currentIndexChanged.connect(lambda _: self.study_chosen.emit(Path(self.chooser.currentData())))
        can = self.can
        self.new_button, self.open_button = ActionButton(can["new"], "Ne&w…"), ActionButton(can["open"], "&Open…")
        self.recent_button = QPushButton("Recen&t")
        # As a child of the panel, which has a focus proxy, it would cut the panel off from the Tab order.
        self.recent_menu = QMenu(self.recent_button)
        # Made at once and never deleted: wrappers of deleted actions are mistaken for later ones.
        self._recent = [QAction(self.recent_menu) for _ in range(MOST_RECENT)]
        self.recent_menu.addActions(self._recent)
        self.recent_menu.triggered.connect(lambda action: self.recent_chosen.emit(action.data()))
        self.recent_button.setMenu(self.recent_menu)
        self.example_button = ActionButton(can["example"], "Open example")
        files = self.new_button, self.open_button, ActionButton(can["folder"], "Fol&der…"), self.recent_button
        top = build.row((self.chooser, 1), *files, self.example_button)
        self.run_button = ActionButton(can["run"], "Ru&n")
        build.hold_width(self.run_button, "Ru&n again")
        self.pause_button = ActionButton(can["pause"], "&Pause")
        self.cancel_button = ActionButton(can["cancel"], "Ca&ncel")
        self.where = build.combo("Where it runs", (("On this machine", HERE), ("On a Ray cluster", CLUSTER)))
        self.where.currentIndexChanged.connect(lambda _: self._show())
        tip = "“auto”: the cluster of this machine; “local”: a cluster of this machine alone"
        self.address = build.named(QLineEdit("auto"), "Address of the Ray cluster", tip)
        self.address.setMaximumWidth(11 * em)
        tip = "Number of models to load; all: one per GPU or core"
        workers = SpinBox(minimum=0, maximum=10_000, prefix="workers: ")
        self.workers = build.named(workers, "Workers on the cluster", tip)
        self.workers.setSpecialValueText("workers: all")
        self.progress = JobProgress("Progress of the study")
        self.aside_button, self.folder_button = ActionButton(can["aside"]), ActionButton(can["choose_folder"])
        self._state = build.label(name="State of the study", selectable=True, yielding=True)
        buttons = self.run_button, self.cancel_button, self.pause_button
        where = self.where, self.address, self.workers, self.aside_button, self.folder_button
        run = build.row(*buttons, *where, (self.progress, 1), (self._state, 1))
        self.table = StudyTable(colours)
        self.table.current_changed.connect(lambda _: self._show_buttons())
        self.failures, self.worst = FailuresTable(), WorstTable()
        self.found = _text("Findings")
        self.file = _text("The study's file")
        self.file.setFont(QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont))
        self.tabs = build.named(_Parts(), "Parts of the study")
        self.tabs.setDocumentMode(True)
        for one in (self.table, self.failures, self.worst, self.found, self.file):
            self.tabs.addTab(one, "")
        self.use_button, self.export_button = ActionButton(can["use"], "Use this settin&g"), ActionButton(can["export"])
        self.report_button = ActionButton(can["report"], "Wr&ite report")
        self.close_button = ActionButton(can["close"], "Close stud&y")
        # Next to the tabs, because the dock of a small window is low.
        of_study = self.use_button, self.export_button, self.report_button, ActionButton(can["reveal"])
        self.tabs.setCornerWidget(build.row(*of_study, self.close_button))
        self.install = InstallOffer()
        build.fill(VBoxLayout(content := QWidget()), (run, self.install, (self.tabs, 1))).setSpacing(NEAR)
        self.pages = Invited(content, _INVITATION)
        build.fill(VBoxLayout(self), (top, (self.pages, 1)), (GAP, NEAR, GAP, NEAR)).setSpacing(NEAR)
        self.setFocusProxy(self.new_button)

    def show_studies(self, studies: Sequence[tuple[Path, str]], chosen: Path | None) -> None:
        """List the open studies (folder, title), with ``chosen`` shown."""
        titles, box = Counter(title for _, title in studies), self.chooser
        named = [
            (title if titles[title] == 1 else f"{title} – {_short(place)}", str(place)) for place, title in studies
        ]
        with QSignalBlocker(box):
            # Only after a change: its list may be open.
            if named != [(box.itemText(index), box.itemData(index)) for index in range(box.count())]:
                build.offer(box, named, str(chosen))
                for _, place in named:
                    entry(box, place).setToolTip(place)
            box.setCurrentIndex(box.findData(str(chosen)))
        box.setEnabled(bool(studies))
        if not studies:
            self.show_summary(None)

    def show_recent(self, places: Sequence[str]) -> None:
        for index, action in enumerate(self._recent):
            action.setVisible(index < len(places))
            if index < len(places):
                action.setText(_short(Path(places[index])).replace("&", "&&"))  # Escaped for menus.
                action.setToolTip(places[index])
                action.setData(places[index])
        self.recent_button.setEnabled(bool(places))
        self.recent_button.setToolTip("Recent studies" if places else "No recent studies.")

    def show_summary(self, summary: OpenStudy | None) -> None:
        other = summary is None or self.summary is None or summary.folder != self.summary.folder
        self.summary = summary
        if other and (summary is None or summary.folder != self._running):
            self._said = ""
        self.table.show_summary(summary)
        self.failures.show_summary(summary)
        self.worst.show_summary(summary)
        self.tabs.setTabVisible(self.tabs.indexOf(self.worst), bool(self.worst.rowCount()))
        failed = self.failures.rowCount()
        found = "\n\n".join(summary.findings) if summary is not None else ""
        nothing = "Nothing yet. This page shows a search's answer and the judges' scores of reference speech."
        definition = summary.definition if summary is not None else ""
        for widget, text in ((self.found, found or nothing), (self.file, definition)):
            if widget.toPlainText() != text:
                widget.setPlainText(text)
        titles = ("Settings", f"Failures ({failed})" if failed else "Failures", "Most errors", "Found", "File")
        for index, title in enumerate(titles):
            self.tabs.setTabText(index, title)
        self._show()

    def set_cluster(self, cluster: str) -> None:
        """Disable clusters for the reason ``cluster``; ``""`` enables them."""
        item = entry(self.where, CLUSTER)
        item.setEnabled(not cluster)
        item.setToolTip(cluster)
        self.where.setToolTip(cluster or "Ratios never combine takes of different machines")
        if cluster:
            self.where.setCurrentIndex(self.where.findData(HERE))

    def begin(self, folder: Path) -> None:
        self._running, self._said, self._now = folder, "", ""
        self.progress.begin()
        self.set_pausing(False)
        self._show()

    def set_pausing(self, on: bool) -> None:
        self._pausing = on
        self.pause_button.set_text("&Pausing…" if on else "&Pause")
        self.can["pause"].refresh()
        self._show_state()

    def show_progress(self, event: Progress) -> None:
        if self._running is None:
            return
        done, total, seconds = event.done, event.total, event.seconds_left
        build.show_share(self.progress, done / max(1, total))
        left = "" if seconds is None or done >= total else f", about {duration(seconds)} left"
        about = event.text if event.unit == "bytes" else f"{grouped(done)} of {grouped(total)} {event.unit}"
        self.progress.setFormat(f"{about}{left}")
        self._now = f"Now: {event.now}" if event.now else self._now
        self._show_state()

    def end(self, said: str = "", failed: bool = False) -> None:
        if self.summary is None or self.summary.folder == self._running:  # Another study has nothing of it.
            self._said, self._tone = said, "warning" if failed else "muted"
        self._running = None
        self._show()

    def say(self, text: str, tone: str = "muted") -> None:
        self._said, self._tone = text, tone
        self._show_state()

    def set_colours(self, colours: Colours) -> None:
        self.table.study.set_colours(colours)

    @property
    def state(self) -> str:
        return self._state.text()

    @property
    def cluster(self) -> tuple[str, int]:
        """Address of the chosen cluster, ``""`` for this machine, and number of workers."""
        here = self.where.currentData() == HERE
        return ("", 0) if here else (self.address.text().strip() or "auto", self.workers.value())

    def _show(self) -> None:
        self.install.offer(self.can["run"].reason)
        self.pages.show_content(self.summary is not None)
        if self.summary is not None:
            self._show_buttons()
            self._show_state()

    def _show_buttons(self) -> None:
        summary, running = self.summary, self._running is not None
        if summary is None:
            return
        here = running and summary.folder == self._running
        finished = summary.study is not None and not summary.left and bool(summary.made)
        self.run_button.set_text("Ru&n again" if finished else "Resume" if summary.results is not None else "Ru&n")
        self.run_button.setVisible(not here)
        retry = "Retry failed takes and run what is new in the file"
        self.can["run"].set_tip(retry if finished else progress_words(summary))
        set_look(self.run_button, "" if finished or self.can["run"].reason else "primary")
        for one in (self.pause_button, self.cancel_button, self.progress):
            one.setVisible(here)
        clustered = self.where.currentData() == CLUSTER
        self.where.setVisible(not here)
        self.address.setVisible(clustered and not here)
        self.workers.setVisible(clustered and not here)
        self.aside_button.setVisible(summary.damaged and not here)
        self.folder_button.setVisible(bool(summary.lost_folder) and not summary.damaged and not here)
        for name in ("pause", "use", "export"):
            self.can[name].refresh()

    def _show_state(self) -> None:
        summary = self.summary
        if summary is None:
            return
        here = self._running == summary.folder
        problem = "\n".join(filter(None, (summary.folder_problem, "" if summary.made else summary.file_problem)))
        if here:
            text, tone = self._now or "Getting ready…", "muted"
            if self._pausing:
                text = f"Pausing after this. {text}"
        elif summary.lost_folder and summary.left and not problem:
            text, tone = f"{progress_words(summary)} {lost_words(summary)}", "warning"
        elif self._said:
            text = f"{self._said}{_failed(summary)} {summary.file_problem}".strip()
            tone = "warning" if summary.file_problem else self._tone
        else:
            warned = problem or summary.file_problem
            text, tone = problem or progress_words(summary), "warning" if warned else "muted"
            if self.can["run"].reason and summary.left and not warned:
                text = f"{text} {self.can['run'].reason}"
        self._state.setText(text)
        self._state.setToolTip(text)
        set_look(self._state, tone)


class _Parts(QTabWidget):
    """Tabs as low as a table with one row."""

    def minimumSizeHint(self) -> QSize:
        least = self.tabBar().sizeHint().height() + 4 * self.fontMetrics().height()
        return QSize(super().minimumSizeHint().width(), least)


def _text(name: str) -> QPlainTextEdit:
    return build.named(QPlainTextEdit(readOnly=True, tabChangesFocus=True), name)


def _short(place: Path) -> str:
    return f"{place.parent.name}/{place.name}"
