"""Views: questions about the model, answered by figures from real runs."""

from collections.abc import Mapping, Sequence

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QWidget

from paretone.errors import SettingError
from paretone.models.base import ModelInfo
from paretone.setting.knobs import Values, checked, defaults
from paretone.views import view as named
from paretone.views import views
from paretone.views.figure import Figure, Provenance
from paretone.views.view import View
from paretone_app.numbers import localised, rough_duration
from paretone_app.plotting.canvas import FigureCanvas
from paretone_app.shell.colours import Colours
from paretone_app.shell.regions import insert_after
from paretone_app.shell.theme import set_look
from paretone_app.widgets import build
from paretone_app.widgets.action import Action, ActionButton
from paretone_app.widgets.boxes import ComboBox
from paretone_app.widgets.invitation import Invited
from paretone_app.widgets.knob_controls import KnobControls
from paretone_app.widgets.layouts import Scrolled, VBoxLayout
from paretone_app.widgets.panel_parts import JobProgress, export_buttons

_NO_FIGURE = "Compute a figure first."
_INVITATION = (
    "The answer is drawn here; it takes runs of the model on the sentence in Setup, from seconds to minutes, with the "
    "time left shown."
)


class ViewsPanel(QWidget):
    """Left: choice of a question, its knobs, and computing. Right: the figure with its caption."""

    def __init__(self, colours: Colours, compute: Action, cancel: Action, save: Sequence[Action]) -> None:
        super().__init__()
        self._save = tuple(save)
        self._compute, self._cancel = compute, cancel
        self._info: ModelInfo | None = None
        self._running: str | None = None
        self.figures: dict[str, Figure] = {}
        self._failures: dict[str, str] = {}
        self._values: dict[str, Values] = {}
        self._controls: dict[str, KnobControls] = {}
        self._build(colours)
        self._show_view()

    def _build(self, colours: Colours) -> None:
        em = self.fontMetrics().height()
        self.chooser = build.named(ComboBox(), "View")
        self._offer()
        self.chooser.currentIndexChanged.connect(self._show_view)
        self._question = build.words("title")
        self._source = build.words("muted")
        self._knob_column = build.fill(VBoxLayout(held := QWidget()), (1,))
        self._knob_area = Scrolled(held)
        self.compute_button = ActionButton(self._compute)
        self._compute.changed.connect(self._show_state)
        self.cancel_button = build.keeping_room(ActionButton(self._cancel, "Cance&l"))
        self.progress = build.keeping_room(JobProgress("Progress of the view"))
        self.state = build.words("muted")
        buttons = build.row((self.compute_button, 1), (self.cancel_button, 1))
        for action in self._save:
            action.explain(lambda: "" if self.figure is not None else _NO_FIGURE)
        self.enlarge_button = build.button("Enlar&ge", self._enlarge, "Show the figure in a separate window")
        head, foot = (self.chooser, self._question, self._source), (self.progress, self.enlarge_button)
        left = build.column(*head, (self._knob_area, 1), buttons, *foot, export_buttons(self._save))

        self.canvas = FigureCanvas(colours)
        self.canvas.read.connect(self._read)
        self.reading = build.words("muted")
        self.caption = build.words(selectable=True)
        said = build.named(Scrolled(self.caption), "Caption")
        said.let_keys_scroll()
        said.setFixedHeight(round(3.6 * em))
        self.pages = Invited(build.column((self.canvas, 1), self.reading, said))
        self.pages.offer(self._compute, double=self.compute_button)
        right = build.column(self.state, (self.pages, 1))  # Here a sentence moves no controls.
        outer = VBoxLayout(self)
        outer.addWidget(build.splitter(Qt.Orientation.Horizontal, [(left, 0), (right, 1)], [17 * em, 50 * em], em))
        self.setFocusProxy(self.chooser)

    def set_model(self, info: ModelInfo | None) -> None:
        """Set the loaded model, for the list of views and their knobs."""
        if info != self._info:
            self._info = info
            if info is not None:
                self._offer()
            self._show_view()

    def choose(self, name: str) -> None:
        if (index := self.chooser.findData(name)) >= 0:
            self.chooser.setCurrentIndex(index)

    def begin(self, view: str) -> None:
        self._running = view
        self._failures.pop(view, None)
        self.progress.begin()
        self._show_view()

    def show_figure(self, figure: Figure) -> None:
        self.figures[figure.view] = figure
        if self.chooser.currentData() == figure.view:
            self._show_view()

    def end(self, failure: str = "") -> None:
        if self._running is not None and failure:
            self._failures[self._running] = failure
        self._running = None
        self._show_view()

    @property
    def view(self) -> View:
        return named(self.chooser.currentData())

    @property
    def knobs(self) -> KnobControls:
        """The controls of the chosen view, created on demand."""
        if (name := self.view.name) not in self._controls:
            made = self._controls[name] = KnobControls(self.view.title)
            made.changed.connect(self._change_knob)
            # Tab follows reading order, although controls are created on demand.
            made.rebuilt.connect(lambda: insert_after(self.chooser, self.knobs.reachable))
            self._knob_column.insertWidget(0, made)
        return self._controls[name]

    @property
    def figure(self) -> Figure | None:
        return self.figures.get(self.view.name)

    @property
    def values(self) -> Mapping[str, object]:
        return self._values.get(self.view.name) or defaults(self.view.knobs(self._layers or 1))

    @property
    def _layers(self) -> int:
        """Of what the chosen view draws; 0 if it does not suit the model."""
        subject = None if self._info is None else self.view.subject(self._info)
        return 0 if subject is None else subject.layers

    def _offer(self) -> None:
        """List the views of the model, or all views if there are none; keep the chosen view if listed."""
        listed = [one for one in views() if self._info is not None and one.subject(self._info)] or views()
        build.offer(self.chooser, [(one.title, one.name, one.question) for one in listed], self.chooser.currentData())

    def _show_view(self) -> None:
        view = self.view
        self._question.setText(view.question)
        self._source.setText(f"After {view.source}.")
        knobs = view.knobs(self._layers) if self._layers else ()
        try:
            values = checked(knobs, self.values if knobs else {}, view.title)
        except SettingError:
            # The values do not fit another model, which has fewer layers.
            values = defaults(knobs)
        if knobs:
            self._values[view.name] = values
        for one in self._controls.values():
            one.hide()
        self.knobs.set_knobs(knobs, values)
        self.knobs.show()
        bar = self._knob_area.verticalScrollBar().sizeHint().width()
        self._knob_area.setMinimumWidth(self.knobs.minimumSizeHint().width() + bar)  # It does not scroll sideways.
        figure = self.figure
        if self.canvas.figure is not figure:
            self.canvas.show_figure(figure)
            self.reading.setText("Point at the figure or use the arrow keys to read values.")
        self.pages.show_content(figure is not None)
        if figure is not None:
            self.caption.setText(localised(figure.caption))
            self.caption.setToolTip(f"{figure.provenance.line}; {figure.provenance.machine}")
        self.enlarge_button.setEnabled(figure is not None)
        self.enlarge_button.setToolTip("Show the figure in a separate window" if figure is not None else _NO_FIGURE)
        for action in self._save:
            action.refresh()
        self._show_state()

    def _show_state(self) -> None:
        running, failure = self._running, self._failures.get(self.view.name, "")
        self.cancel_button.setVisible(running is not None)
        self.progress.setVisible(running is not None)
        provenance, made = None if self.figure is None else self.figure.provenance, ""
        if isinstance(provenance, Provenance):
            # A figure stays after a change of model, so it names its model.
            made = f"{provenance.model}, computed in {rough_duration(provenance.seconds)}."
        title = next((one.title for one in views() if one.name == running), "")
        says = failure or (self._compute.reason if running is None else f"Computing: {title}") or made
        self.state.setText(says)
        set_look(self.state, "warning" if failure and says == failure else "muted")
        waiting = self._compute.reason if running is None else ""
        self.pages.invite(waiting or _INVITATION)
        self.state.setVisible(not (waiting and self.pages.is_empty and says == waiting))  # The page says it.

    def _change_knob(self, name: str, value: object) -> None:
        knobs = self.view.knobs(self._layers)
        values = checked(knobs, Values(self.values).replace(**{name: value}), self.view.title)
        self._values[self.view.name] = values
        self.knobs.set_knobs(knobs, values)

    def _enlarge(self) -> None:
        if self.figure is None:
            return
        large = FigureCanvas(self.canvas.colours, self)
        large.setWindowFlags(Qt.WindowType.Window)
        # Kept after closing, so that Qt and Python never destroy it on different threads.
        large.setWindowTitle(f"{self.figure.title} – Paretone")
        large.show_figure(self.figure)
        large.read.connect(large.setToolTip)
        large.resize(self.window().size() * 0.8)
        large.show()

    def _read(self, words: str) -> None:
        self.reading.setText(words)
        self.canvas.setAccessibleDescription(words)
