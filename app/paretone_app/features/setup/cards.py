"""Techniques in Setup: one card each, with benefit, applicability, gain and knobs."""

from collections.abc import Callable, Mapping
from typing import Any

from PySide6.QtCore import QRectF, QSignalBlocker, QSize, Qt, Signal
from PySide6.QtGui import QColor, QFontMetrics, QMouseEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QGroupBox, QLabel, QSizePolicy, QWidget

from paretone.errors import PlainError, SettingError
from paretone.measure.metrics import metric
from paretone.sampling.demasking_schedule import demasking_times
from paretone.sampling.schedules import effective_spacing, time_grid
from paretone.studies.gains import Gain
from paretone.techniques import find, technique
from paretone.techniques.base import Technique
from paretone.techniques.published import comparisons, offered
from paretone.training.forms import TrainingOffer
from paretone.wording import listed
from paretone_app.numbers import general, localised, times
from paretone_app.shell.colours import Colours
from paretone_app.shell.theme import GAP, NEAR, TIGHT, set_look, text_font
from paretone_app.state.app_state import AppState
from paretone_app.state.availability import Applicability, Fit
from paretone_app.state.differences import first_value, weights_title
from paretone_app.widgets import build
from paretone_app.widgets.action import Action, ActionButton
from paretone_app.widgets.boxes import ComboBox
from paretone_app.widgets.knob_controls import KnobControls
from paretone_app.widgets.layouts import VBoxLayout
from paretone_app.widgets.screen_readers import CHART

_MARK_WIDTH = 2.0


class StepGrid(QWidget):
    """Marks at the times of a step grid, from noise (left) to speech (right); below, fainter, another grid's."""

    screen_role = CHART

    def __init__(self, colours: Colours) -> None:
        super().__init__()
        self._colours = colours
        self.times: tuple[float, ...] = ()
        self.others: tuple[float, ...] = ()
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def sizeHint(self) -> QSize:
        line = self.fontMetrics().height()
        return QSize(line * 8, int(line * (1.7 if self.others else 1.2)))

    minimumSizeHint = sizeHint

    def set_colours(self, colours: Colours) -> None:
        self._colours = colours
        self.update()

    def show_options(self, options: Mapping[str, Any], other: Mapping[str, Any] | None = None) -> None:
        """Show the grid of sampler ``options``, and that of ``other`` options below it; nothing if they make none."""
        try:
            self.times, words = _times(options), _words(options)
            self.others = () if other is None else _times(other)
        except KeyError:
            self.times, self.others, words = (), (), ""
        except SettingError as error:
            self.times, self.others, words = (), (), str(error)
        self.setVisible("steps" in options)
        compared = f" Below it the baseline's: {_words(other)}." if self.others and other is not None else ""
        ends = "Left: canvas empty; right: canvas full" if "shift" in options else "Left: noise; right: speech"
        description = f"Effective step grid: {words}. {ends}.{compared}"
        self.setToolTip(description)
        self.setAccessibleName(description)
        self.updateGeometry()
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        with QPainter(self) as painter:
            height, width = self.height(), self.width() - _MARK_WIDTH
            axis = height * (0.52 if self.others else 0.75)
            painter.fillRect(QRectF(0, axis, self.width(), 1), QColor(self._colours.border))
            for time in self.others:
                painter.fillRect(QRectF(time * width, axis + 2, 1, height * 0.3), QColor(self._colours.disabled))
            for time in self.times:
                top = height * 0.1
                painter.fillRect(QRectF(time * width, top, _MARK_WIDTH, axis - top), QColor(self._colours.accent))


def _times(options: Mapping[str, Any]) -> tuple[float, ...]:
    if "shift" in options:
        return tuple(demasking_times(int(options["steps"]), float(options["shift"])).tolist())
    grid = time_grid(int(options["steps"]), str(options.get("spacing", "uniform")), float(options.get("sway", 0.0)))
    return tuple(float(time) for time in grid)


def _words(options: Mapping[str, Any]) -> str:
    steps = int(options["steps"])
    if "shift" in options:
        return f"{steps} steps, schedule {general(float(options['shift']))}"
    name = "EPSS" if effective_spacing(steps, str(options.get("spacing", "uniform"))) == "epss" else "uniform"
    return f"{steps} steps, {name}, sway {general(float(options.get('sway', 0.0)))}"


NOT_MEASURED = "not measured here yet"
_FIRST = {"calibration": "Switch it on, then calibrate", "training": "Train it first"}


def lacks_calibration(state: AppState, technique: Technique, found: Applicability) -> bool:
    """Whether nothing but a calibration is missing, of which there is none yet."""
    calibrated = technique.prepared_by != "calibration" or bool(state.artefacts.fingerprint(technique.name))
    return found.fit is Fit.UNPREPARED and not calibrated


def fit_words(state: AppState, technique: Technique, found: Applicability, used: bool = False) -> str:
    """Whether the technique applies or gains little, with the reason.

    The problem of one in use has its own line, but for a missing calibration: as it ends, nothing moves.
    """
    info = state.selection.info
    if used and found.why:
        words = "Calibrate first" if lacks_calibration(state, technique, found) else ""
    elif found.fit is Fit.APPLIES:
        words = "Known once the model is loaded"  # Its device decides, too.
        if info is not None and state.selection.ready:
            words = technique.little(info).rstrip(".") or "Applies here"
    elif found.fit is Fit.EXCLUDED and found.others:
        words = f"Not with {listed(one.partition(' (')[0] for one in found.others)}"
    elif found.fit is Fit.UNPREPARED and technique.prepared_by:
        words = _FIRST[technique.prepared_by]
    else:
        words = found.why.rstrip(".")
    return " · ".join(filter(None, ("Experiment" if technique.experimental else "", words)))


def gain_words(gain: Gain | None) -> str:
    """The last measured gain, such as ``1.85× as fast (δ = 0.1)``."""
    if gain is None:
        return NOT_MEASURED
    value = first_value(gain.entry)
    return f"{_ratio_words(gain)}{f' ({value})' if value else ''}"


def _ratio_words(gain: Gain) -> str:
    declared = find(gain.entry.technique)
    sooner = declared is not None and metric(declared.improves).name == "first_audio_seconds"
    if gain.ratio >= 1:
        return f"first audio {times(gain.ratio)} sooner" if sooner else f"{times(gain.ratio)} as fast"
    return f"first audio {times(1 / gain.ratio)} later" if sooner else f"{times(1 / gain.ratio)} slower"


def gain_details(gain: Gain | None) -> str:
    if gain is None:
        return "Make a baseline and a take with this technique to measure what it gains on this machine."
    value = first_value(gain.entry)
    others = ", ".join(found.title for name in gain.others if (found := find(name)) is not None)
    pairs = "1 pair of takes" if gain.pairs == 1 else f"{gain.pairs} pairs of takes"
    parts = (
        f"{_ratio_words(gain)[0].upper()}{_ratio_words(gain)[1:]}",
        f" (95 % interval {times(gain.interval[0])} to {times(gain.interval[1])})" if gain.interval else "",
        f" with {value}" if value else "",
        f", on top of {others}" if others else "",
        f": the median of the study “{gain.study}”, {pairs}" if gain.study else f": {pairs} of the same text",
        f", on this machine, {gain.created[:10]}.",
    )
    return "".join(parts)


_GRID = {"steps", "spacing", "sway"}  # Knobs that make a step grid.


class TechniqueCard(QGroupBox):
    """One technique. Ticking the card, or a click on its head, switches it on."""

    training_wanted = Signal(str, object)
    weights_chosen = Signal(str)
    published_chosen = Signal(object)

    def __init__(self, technique: Technique, colours: Colours) -> None:
        # The panel is narrow: the bracketed part of a title is in the tooltip.
        super().__init__(technique.title.partition(" (")[0], checkable=True)
        self.technique = technique
        self.setProperty("look", "card")
        self.fit = Applicability(Fit.APPLIES)
        self._pressed = False
        self._offer: TrainingOffer | None = None
        paper = f"<i>{technique.paper.title}</i>, {technique.paper.reference}"
        self.setToolTip(f"<b>{technique.title}</b><br>{technique.summary}<br>{paper}")
        self.setAccessibleName(f"Use {technique.title}")
        # Plain even in an unticked card, whose content Qt disables.
        self.benefit = build.words("plain")
        self.benefit.setText(technique.benefit or technique.summary)
        self.state = build.words("muted")
        self.controls = KnobControls(technique.title, foremost=1)
        tip = "Several trained weight sets fit these knobs: choose one"
        self.weights = build.narrow(build.named(ComboBox(), f"Weights of {technique.title}", tip), 0)
        self.weights.activated.connect(lambda _: self.weights_chosen.emit(self.weights.currentData()))
        self.published = build.combo(f"Published settings of {technique.title}", tip="Settings of its source")
        tip, name = "Set the knobs and the sampler as in the source", f"{technique.title} as published"
        self.as_published = build.button("As published", tip=tip, name=name)
        for signal in (self.published.activated, self.as_published.clicked):
            signal.connect(lambda _: self.published_chosen.emit(self.published.currentData()))
        self.comparison = build.words("muted")
        self.controls.fold.toggled.connect(lambda on: self.comparison.setVisible(on and bool(self.comparison.text())))
        self.grid = StepGrid(colours)
        self._has_grid = {knob.name for knob in technique.knobs} >= _GRID
        self.meaning, self.remarks, self.reason = build.words("muted"), build.words("muted"), build.words("warning")
        self.estimate = build.words("muted")
        self.train = build.button("&Train…", self._ask_for_training)
        self._head = build.column(self.benefit, self.state)
        self._head.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Minimum)
        self._body = QWidget()
        column = VBoxLayout(self._body)
        column.setContentsMargins(0, NEAR, 0, TIGHT)
        said = (self.meaning, self.remarks, self.reason, self.estimate)
        source = build.row(self.as_published, self.published)
        for one in (source, self.controls, self.weights, self.grid, *said, self.comparison, self.train):
            column.addWidget(one)
        build.fill(VBoxLayout(self), [self._head, self._body]).setContentsMargins(GAP, 0, GAP, NEAR)

    @property
    def reachable(self) -> tuple[QWidget, ...]:
        return self, self.as_published, self.published, *self.controls.reachable, self.weights, self.train

    def minimumSizeHint(self) -> QSize:
        """Wide enough for the bold title."""
        bold = text_font(self.font(), strong=True)
        title = QFontMetrics(bold).horizontalAdvance(self.title()) + 2 * self.fontMetrics().height()
        return super().minimumSizeHint().expandedTo(QSize(title, 0))

    def show_selection(self, state: AppState) -> None:
        """Show whether the technique is in use, and its knobs; :meth:`show_reason` shows the rest."""
        name, used = self.technique.name, state.selection.is_used(self.technique.name)
        with QSignalBlocker(self):
            self.setChecked(used)
        self._body.setVisible(used)
        set_look(self, "chosen-card" if used else "card")
        knobs = state.selection.knobs(name)
        self.controls.set_knobs(self.technique.knobs, knobs)
        there, chosen = state.selection.fitting_weights(name), state.selection.chosen_weights(name)
        build.offer(self.weights, [(weights_title(one), one.fingerprint, one.path) for one in there], chosen)
        self.weights.setVisible(len(there) > 1)
        self._show_published(state, used)
        if self._has_grid:
            self.grid.show_options(state.selection.options_in_force, state.selection.options)
        else:
            self.grid.hide()
        _say(self.meaning, _sentence(self.technique.describe(knobs)))

    def _show_published(self, state: AppState, used: bool) -> None:
        """Show the published settings, the nearest one first, and what is otherwise."""
        there = offered(self.technique, state.selection.entry.options)
        known = comparisons(state.selection.setting) if there and used else ()
        found = next((one for one in known if one.technique == self.technique.name), None)
        build.offer(self.published, [(one.name, one, one.source) for one in there], None)
        if found is not None:
            self.published.setCurrentIndex(there.index(found.published))
        self.published.setVisible(len(there) > 1)
        self.as_published.setVisible(bool(there))
        self.comparison.setText(localised(found.sentence) if found is not None else "")
        self.comparison.setVisible(bool(self.comparison.text()) and self.controls.fold.isChecked())
        self.published.setToolTip(self.comparison.text() or "Settings of its source")

    def show_reason(self, state: AppState) -> None:
        """Show whether the technique applies, its gain, and what prevents a run."""
        name = self.technique.name
        self.fit = state.availability.applicability(name)
        gain, used = state.gains.of(name), state.selection.is_used(name)
        # A problem of one in use has its own line.
        fits = fit_words(state, self.technique, self.fit, used)
        said = " · ".join(filter(None, (fits, "" if self.fit.fit is Fit.IMPOSSIBLE and not gain else gain_words(gain))))
        said = said[:1].upper() + said[1:]
        _say(self.state, said)
        lacks = used and lacks_calibration(state, self.technique, self.fit)
        set_look(self.state, "warning" if lacks else "muted")
        self.state.setToolTip(localised(" ".join(filter(None, (self.fit.why, gain_details(gain))))))
        self.setAccessibleDescription(localised(f"{self.benefit.text()}. {said}. {self.technique.summary}"))
        _say(self.remarks, " ".join(state.availability.technique_remarks(name)))
        _say(self.reason, "" if lacks else state.availability.technique_problem(name))
        self._offer = state.availability.training_offer(name)
        self.train.setVisible(self._offer is not None)
        if self._offer is not None:
            self.train.setText(self._offer.text)
            self.train.setToolTip(self._offer.tip)
        _say(self.estimate, self._offer.estimate if self._offer is not None else "")

    def mousePressEvent(self, event: QMouseEvent) -> None:
        super().mousePressEvent(event)
        self._pressed = self._on_head(event)
        if self._pressed:
            event.accept()

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        super().mouseReleaseEvent(event)
        if self._pressed and self._on_head(event):
            self.setFocus(Qt.FocusReason.MouseFocusReason)
            self.setChecked(not self.isChecked())
        self._pressed = False

    def _on_head(self, event: QMouseEvent) -> bool:
        """Whether the left button is on the card's head, below its title."""
        left = event.button() == Qt.MouseButton.LeftButton
        return left and self._head.geometry().contains(event.position().toPoint())

    def _ask_for_training(self) -> None:
        if self._offer is not None:
            self.training_wanted.emit(self.technique.name, dict(self._offer.knobs))


def _say(label: QLabel, text: str) -> None:
    label.setText(localised(text))
    label.setVisible(bool(text))


def _sentence(words: str) -> str:
    """``words`` as a sentence; a symbol at its beginning is not capitalised."""
    symbol = words.partition(" ")[2].startswith("=")
    return f"{words if symbol else words[0].upper() + words[1:]}." if words else ""


class _Cards(dict[str, TechniqueCard]):
    """Cards by name of their technique; each is made when it is first asked for."""

    def __init__(self, make: Callable[[str], TechniqueCard]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, name: str) -> TechniqueCard:
        return self._make(name)


class TechniqueList(QWidget):
    """The techniques in use, one card each, and *+ Add technique*. A card that is unticked stays until another is
    added or a model is chosen, so that nothing moves under the pointer."""

    problem = Signal(str)
    training_wanted = Signal(str, object)
    rebuilt = Signal()
    """Widgets were added or reordered."""

    def __init__(self, state: AppState, colours: Colours, add: Action) -> None:
        super().__init__()
        self._state = state
        self._colours = colours
        self.groups = _Cards(self._made)
        self._shown: tuple[str, ...] = ()  # Names of the cards in sight, in their order.
        self._used: frozenset[str] = frozenset()
        self.add = ActionButton(add, "+ Add techni&que…", name="Add technique")
        self._column = VBoxLayout(self)
        self._column.setContentsMargins(0, NEAR, 0, 0)
        self._column.setSpacing(NEAR)
        heading = build.label("Techniques", "title")
        heading.setContentsMargins(NEAR, 0, 0, 0)  # Aligned with the headings of the groups.
        self._column.addWidget(heading)
        self._column.addWidget(self.add)

    @property
    def reachable(self) -> tuple[QWidget, ...]:
        hidden = (one for name, group in self.groups.items() if name not in self._shown for one in group.reachable)
        return *(one for name in self._shown for one in self.groups[name].reachable), self.add, *hidden

    def set_colours(self, colours: Colours) -> None:
        self._colours = colours
        for group in self.groups.values():
            group.grid.set_colours(colours)

    def where_to_use(self, name: str) -> QWidget:
        return self.groups[name] if name in self._shown else self.add

    def show_techniques(self) -> None:
        """Show the cards of the techniques in use, and no others."""
        self._used = frozenset()
        for group in self.groups.values():
            group.controls.fold_defaults()
        self.show_selection()

    def show_selection(self) -> None:
        """Show the techniques in use, and the knobs; :meth:`show_reasons` shows the rest."""
        selection = self._state.selection
        offered = tuple(one.name for one in selection.techniques)
        used = frozenset(name for name in offered if selection.is_used(name))
        stay = used if used - self._used else used.union(self._shown)
        shown, self._used = tuple(name for name in offered if name in stay), used
        for name in shown:
            self.groups[name].show_selection(self._state)
        if shown != self._shown:
            self._shown = shown
            for name, group in self.groups.items():
                group.setVisible(name in shown)
            for place, name in enumerate(shown, start=1):  # Below the heading.
                self._column.insertWidget(place, self.groups[name])
            self.rebuilt.emit()

    def show_reasons(self) -> None:
        """Show remarks, gains, what prevents a run, and offers of training."""
        for name in self._shown:
            self.groups[name].show_reason(self._state)

    def _made(self, name: str) -> TechniqueCard:
        group = self.groups[name] = TechniqueCard(technique(name), self._colours)
        group.hide()
        self._column.addWidget(group)
        group.controls.rebuilt.connect(self.rebuilt)
        group.controls.changed.connect(lambda knob, value: self._set_knob(name, knob, value))
        group.toggled.connect(lambda on: self._state.editing.switch(name, on))
        group.training_wanted.connect(self.training_wanted)
        group.weights_chosen.connect(lambda fingerprint: self._state.editing.choose_weights(name, fingerprint))
        group.published_chosen.connect(lambda chosen: self._state.editing.use_published(name, chosen))
        group.show_selection(self._state)
        group.show_reason(self._state)
        return group

    def _set_knob(self, name: str, knob: str, value: object) -> None:
        try:
            self._state.editing.set_knob(name, knob, value)
        except PlainError as error:
            self.problem.emit(str(error))
            self.groups[name].show_selection(self._state)
