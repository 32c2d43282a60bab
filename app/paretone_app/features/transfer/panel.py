"""Transfer: quality of the table on other sentences and voices, and calibration on several if advised."""

from collections.abc import Sequence

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFormLayout, QWidget

from paretone.models.base import Utterance, Voice
from paretone.models.voices import shown_name
from paretone.techniques.ditreducio import UNITS
from paretone.techniques.ditreducio.record import SentenceTransfer, TransferReport
from paretone_app.numbers import counted, fixed, general, percent
from paretone_app.shell.entries import Term
from paretone_app.shell.theme import set_look
from paretone_app.widgets import build
from paretone_app.widgets.action import Action, ActionButton
from paretone_app.widgets.invitation import Invited
from paretone_app.widgets.layouts import FormLayout, HBoxLayout
from paretone_app.widgets.panel_parts import TextsTable, TickList

COMBINATIONS = (("worst", "Worst sentence"), ("mean", "Mean of sentences"))
_COLUMNS = (
    ("Sentence", "Sentence; marked if the table was calibrated on it"),
    ("Voice", "Speaking voice"),
    ("Frames", "Length of the new speech"),
    ("Velocity error", "Mean absolute difference of velocities, in units of the model's output"),
    ("Log-mel distance", "Distance to the full run from the same noise, natural logarithm"),
    ("Beyond bound", "Share of the table's skips whose error here exceeds the bound of the layer"),
    ("Text", "Text"),
)
TERMS = tuple(Term(title, f"{meaning}.") for title, meaning in _COLUMNS)


class TransferPanel(QWidget):
    """Left: choice of sentences and voices. Right: measurements on them, with a verdict."""

    def __init__(self, sentences: Sequence[str], measure: Action, calibrate: Action, advised: Action) -> None:
        """``advised`` calibrates on :attr:`advised`, ``calibrate`` on :attr:`chosen`."""
        super().__init__()
        self.measure, self.calibrate = measure, calibrate
        for action in (measure, calibrate):
            action.explain(lambda: "" if self.chosen else "Tick a sentence and a voice first.")
        self._voices: tuple[Voice, ...] = ()
        self.own: tuple[Utterance, ...] = ()
        """Sentences that the current table was calibrated on, if known."""
        self.report: TransferReport | None = None
        em = self.fontMetrics().height()
        self.sentences, self.voices = TickList("Sentences"), TickList("Voices")
        self.sentences.offer((one, one, number < 2) for number, one in enumerate(sentences))
        self.sentences.itemChanged.connect(self._show)
        self.voices.itemChanged.connect(self._show)
        self.voices.setMaximumHeight(4 * em)
        self.combine = build.combo("Combination of errors", ((title, name) for name, title in COMBINATIONS))
        self.measure_button = ActionButton(measure)
        self.calibrate_button = ActionButton(calibrate)
        self.count = build.words("muted")
        form = FormLayout()
        form.setRowWrapPolicy(QFormLayout.RowWrapPolicy.WrapAllRows)
        form.addRow("C&ombined error", self.combine)
        texts = build.title_of("Sente&nces", self.sentences), (self.sentences, 1)
        voices = build.title_of("Vo&ices", self.voices), self.voices
        left = build.column(*texts, *voices, self.count, self.measure_button, form, self.calibrate_button)

        self.verdict = build.words("title", selectable=True)
        self.advised_button = ActionButton(advised, look="primary")
        self.table = build.keeping_room(TextsTable("Measurements per sentence", _COLUMNS, numbers=range(2, 6)))
        self.pages = Invited(build.column(self.verdict, build.row(self.advised_button, 1), (self.table, 1)))
        self.pages.offer(measure, double=self.measure_button)
        parts = [(left, 0), (self.pages, 1)]
        HBoxLayout(self).addWidget(build.splitter(Qt.Orientation.Horizontal, parts, [18 * em, 42 * em], em))
        self.setFocusProxy(self.sentences)
        measure.changed.connect(self._show_verdict)
        self._show()

    def set_voices(self, voices: Sequence[Voice]) -> None:
        """Set the available voices; ticked ones stay ticked; without any, tick the first."""
        voices = tuple(voices)
        if voices != self._voices:
            ticked = set(self.voices.ticked) & {one.id for one in voices} or {one.id for one in voices[:1]}
            self._voices = voices
            self.voices.offer((one.title, one.id, one.id in ticked) for one in voices)
            self._show()

    def set_table(self, fingerprint: str) -> None:
        """Set the table in use; discard a report on another."""
        if self.report is not None and self.report.table != fingerprint:
            self.show_report(None)

    def show_report(self, report: TransferReport | None) -> None:
        self.report = report
        kinds = () if report is None else (("own", report.calibrated), ("unseen", report.unseen))
        self.table.show_rows([_cells(kind, one) for kind, found in kinds for one in found])
        self._show()

    @property
    def chosen(self) -> tuple[Utterance, ...]:
        voices = {one.id: one for one in self._voices}
        return tuple(Utterance(text, voices[voice]) for voice in self.voices.ticked for text in self.sentences.ticked)

    @property
    def combination(self) -> str:
        """How errors of several sentences are combined, see :data:`COMBINATIONS`."""
        return str(self.combine.currentData())

    @property
    def advised(self) -> tuple[Utterance, ...]:
        """The report's advice for calibration: the table's own sentences and the badly served ones."""
        if (report := self.report) is None:
            return ()
        voices = {one.id: one for one in self._voices}
        worse = [one.sentence for name in report.ill_served for one in report.groups[name]]
        found = [Utterance(one.text, voices[one.voice]) for one in worse if one.voice in voices]
        return tuple(dict.fromkeys((*self.own, *found)))

    def _show(self) -> None:
        report, number = self.report, len(self.chosen)
        for action in (self.measure, self.calibrate):
            action.refresh()
        sentences, voices = len(self.sentences.ticked), len(self.voices.ticked)
        self.count.setText(
            f"{counted(sentences, 'sentence', 'sentences')} × {counted(voices, 'voice', 'voices')} = {number} to speak"
        )
        self.advised_button.setVisible(report is not None and report.advised)
        self.table.setVisible(report is not None)
        self.pages.show_content(report is not None)
        self._show_verdict()

    def _show_verdict(self) -> None:
        if (report := self.report) is None:
            press = "Press Measure transfer to test the table on the ticked sentences."
            self.verdict.setText(self.measure.reason or press)
            self.pages.invite(self.verdict.text())
        else:
            self.verdict.setText(f"{report.verdict} (Threshold {general(report.threshold)}, {UNITS[report.metric]}.)")
        set_look(self.verdict, "muted" if report is None else "good" if report.well else "warning")


def _cells(kind: str, one: SentenceTransfer) -> tuple[str, ...]:
    said, errors = one.sentence, (fixed(one.velocity_error, 4), fixed(one.distance, 3), percent(one.exceeding))
    return kind, shown_name(said.voice), str(said.frames), *errors, said.text
