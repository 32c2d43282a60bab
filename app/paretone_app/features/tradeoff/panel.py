"""Trade-off: takes and settings of studies, speed against quality. Depends on neither the state nor the engine."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from PySide6.QtCore import QSignalBlocker, Qt, Signal

from paretone.listening.results import HeardFrom
from paretone_app.features.tradeoff import controls
from paretone_app.features.tradeoff.plot import TradeoffPlot, write_sheet
from paretone_app.features.tradeoff.saved import Selection, find, recalled, remembered, selection_of
from paretone_app.features.tradeoff.scene import (
    ORIGINS,
    Crossing,
    Filter,
    PlotOptions,
    Pool,
    Scene,
    in_words,
    limit,
    scene,
)
from paretone_app.features.tradeoff.styles import PointStyles
from paretone_app.features.tradeoff.words import Reference, comparable, counts, reference_of, remarks, why
from paretone_app.results.points import STUDY, Point
from paretone_app.shell import file_dialogs
from paretone_app.shell.colours import Colours
from paretone_app.shell.theme import GAP
from paretone_app.widgets import build
from paretone_app.widgets.action import Action, ActionButton, MenuButton
from paretone_app.widgets.invitation import Invited
from paretone_app.widgets.layouts import VBoxLayout
from paretone_app.widgets.panel_parts import ShownPanel

_INVITATION = "No points yet: each take, and each setting of a study, becomes one, speed against quality."


class TradeoffPanel(ShownPanel):
    """From the top: axes and display options, filters, techniques; then the plot and the details of one point."""

    scene_changed = Signal()
    chosen = Signal(object)
    """The user chose another :class:`Point`, or ``None``."""
    selection_changed = Signal(object)
    """The user selected other points (a tuple)."""

    def __init__(self, colours: Colours, can: Mapping[str, Action], published: Sequence[Point] = ()) -> None:
        """``can``: the feature's actions by name, and ``open``."""
        super().__init__()
        self._colours = colours
        self._published = tuple(published)
        self.pool = Pool((), self._published)
        self.filter, self.options = Filter(), PlotOptions()
        self._looks = PointStyles(colours)
        self._awaited: dict[str, str] = {}  # Filter values of the last session without points so far.
        self._read = False
        self._loaded = ""  # Title of the loaded model.
        self._own_models = False
        """Whether the user chose the models to show since it was loaded; else its points are shown alone."""
        self.crossings: tuple[Crossing, ...] = ()
        """Where the user marked that a difference begins, or ends; see :meth:`show_remarks`."""
        self._of_row: tuple[str, ...] = ()
        self._a: Reference | None = None
        self._clear = Action("C&lear", "Show all points again", parent=self)
        self._clear.explain(lambda: "Nothing is filtered." if self.filter == Filter() else "")
        self._clear.triggered.connect(self.clear_filter)
        self._build(colours, can)
        self.set_colours(colours)

    def _build(self, colours: Colours, can: Mapping[str, Action]) -> None:
        self.options_line, self.filter_line = controls.PlotOptionsLine(can), controls.FilterLine(self._clear)
        self.options_line.chosen.connect(self._choose_look)
        self.filter_line.chosen.connect(self._choose_filter)
        save = [can[f"point_{ending}"] for ending in file_dialogs.PLOTS]
        self.export_button = MenuButton("E&xport", "Save the view as SVG, PNG or CSV", save)
        self.open_button = ActionButton(can["open"])
        second = build.row((self.filter_line, 1), self.open_button, self.export_button)
        self.legend = controls.TradeoffLegend()
        self.legend.hidden_changed.connect(self._choose_filter)
        self.plot = TradeoffPlot(colours)
        self.details = controls.TradeoffDetails(colours, can)
        em = self.fontMetrics().height()
        split = build.splitter(Qt.Orientation.Horizontal, [(self.plot, 1), (self.details, 0)], [42 * em, 20 * em])
        self.foot = controls.TradeoffFoot(can)
        self.foot.slider.valueChanged.connect(self.plot.go_along)
        self.plot.chosen.connect(self._point_chosen)
        self.plot.selection_changed.connect(self._selection_changed)
        self.plot.section_changed.connect(self._show_counts)
        self.details.only_changed.connect(self._show_only_selected)
        names = ("hear", "a", "b", "keep", "use", "everything")
        self.plot.insertActions(self.plot.actions()[0], [can[f"point_{name}"] for name in names])
        self.pages = Invited(build.column(self.options_line, second, self.legend, (split, 1), self.foot))
        build.fill(VBoxLayout(self), [self.pages], (GAP,) * 4)
        self._show_page()

    def show_points(self, points: Sequence[Point], heard: Sequence[HeardFrom] = ()) -> None:
        known, first, self._read = self.pool.origins["source"], not self.pool.own.any(), True
        self.pool = Pool(points, self._published, heard, self.pool)
        new = {one.model for one in points if one.source not in known}
        if new and not first and self.filter.model not in new:  # What was just opened is shown.
            self.filter = replace(self.filter, model="")
        if not self.options_line.own_axes:
            studies = any(one.kind == STUDY for one in points)
            self.options = replace(self.options, x="speed_up" if studies else "real_time_factor")
        self._take_what_was_awaited()
        if first:
            self._show_models()
        self._show(choices=True)

    def suit(self, model: str) -> None:
        """Show the points of the loaded ``model`` (a title) alone, if it has some, until the user chooses others."""
        if model != self._loaded:
            self._loaded, self._own_models = model, False
            self._show_models()
            self._show(choices=True)

    def _show_models(self) -> None:
        if not self._own_models:
            model = self._loaded if self._loaded in self.pool.origins["model"] else ""
            self.filter = replace(self.filter, model=model)

    def show_front_playing(self, on: bool, remarks: tuple[str, ...]) -> None:
        """Show whether the front is played, with remarks; dragging then moves along it."""
        self.plot.drags_along, self._of_row = on, remarks
        self.foot.slider.setVisible(on)
        self.foot.mark_button.setVisible(on)
        self.show_remarks()

    def set_a(self, reference: Reference | None) -> None:
        if reference != self._a:
            self._a = reference
            self._show_point()

    def choose(self, key: str) -> None:
        """Make a point current; emits no signal. Ignored if it is not shown."""
        if key in self.plot.scene.index:
            self.plot.choose(key)
            self._show_point()

    def select(self, keys: Collection[str]) -> None:
        """Select points; emits no signal. A single one also becomes current."""
        there = [key for key in keys if key in self.plot.scene.index]
        if len(there) == 1:
            self.choose(there[0])
        elif there:
            self.plot.select(there)
            self._show_point()

    def set_filter(self, chosen: Filter, awaited: dict[str, str] | None = None) -> None:
        self.filter, self._awaited, self._own_models = chosen, awaited or {}, True
        for name, button in self.legend.buttons.items():
            button.setChecked(name not in chosen.hidden)
        self._show(choices=True)

    @property
    def remembered(self) -> str:
        """Options and filter as text, for :meth:`recall`."""
        return remembered(self.options, self.options_line.own_axes, self.filter.with_origins(self._awaited))

    def recall(self, text: str) -> None:
        """Restore :attr:`remembered`, each filter value as soon as it has points."""
        self.options, self.options_line.own_axes, chosen = recalled(text)
        awaited = {name: value for name in ORIGINS if (value := getattr(chosen, name))}
        self.set_filter(chosen.with_origins(dict.fromkeys(ORIGINS, "")), awaited)

    @property
    def selection(self) -> Selection:
        """View and selected points, to share. Raises :class:`SettingError` if no point of a study is selected."""
        return selection_of(self.remembered, self.plot.selected, self.plot.current)

    def take_up(self, shared: Selection) -> str:
        """Apply ``shared``; returns a sentence about missing points, or ``""``. Raises as :func:`find`."""
        keys, current, remark = find(shared, self.pool.points)
        self.recall(shared.view)
        self._take_what_was_awaited()
        self._show()
        if not self.plot.scene.index.keys() >= set(keys):
            self.clear_filter()
        self.plot.choose(current)
        self.plot.take_selection(keys)
        return remark

    def _take_what_was_awaited(self) -> None:
        found = {name: value for name, value in self._awaited.items() if value in self.pool.origins[name]}
        self.filter = self.filter.with_origins(found)
        self._awaited = {name: value for name, value in self._awaited.items() if name not in found}

    def clear_filter(self) -> None:
        self.set_filter(Filter())

    def write(self, path: Path) -> None:
        """Write the view with its section; see :func:`paretone_app.features.tradeoff.plot.write_sheet`."""
        write_sheet(self.scene, self.filter, path, self.font(), self.plot.sections)

    def set_colours(self, colours: Colours) -> None:
        self._colours = colours
        self.details.set_colours(colours)
        self._show()

    @property
    def scene(self) -> Scene:
        return self.plot.scene

    @property
    def invitation(self) -> str:
        return self.pages.invitation.text() if self.pages.is_empty else ""

    # --- User input ---------------------------------------------------------------------------------------------------
    def _choose_look(self) -> None:
        self.options = self.options_line.options
        self._show()

    def _choose_filter(self) -> None:
        before = self.filter.model
        self.filter = replace(self.filter_line.applied_to(self.filter), hidden=self.legend.hidden)
        self._awaited, self._own_models = {}, self._own_models or self.filter.model != before
        self._show()

    def _show_only_selected(self, only: bool) -> None:
        keys = frozenset(one.key for one in self.plot.selected) if only else None
        self.filter = replace(self.filter, only=keys)
        self._show()

    def _point_chosen(self) -> None:
        self._show_point()
        self.chosen.emit(self.plot.current)

    def _selection_changed(self) -> None:
        if self.details.point is self.plot.current:  # Else it is shown next.
            self._show_point()
        self.selection_changed.emit(self.plot.selected)

    def _show(self, choices: bool = False) -> None:
        """Show the filtered points; ``choices``: also offer what can be chosen now."""
        if choices or self._looks.colours != self._colours:
            self.options_line.show_options(self.options, self.pool.axes)
            self.filter = self.filter_line.show_filter(self.filter, self.pool.origins)
            self._looks = PointStyles(self._colours)
            mixed = len({one.kind for one in self.pool.points if not one.published}) > 1
            self.legend.show_techniques(self.pool.counts, self._looks, mixed)
        self.plot.show_scene(scene(self.pool, self.filter, self.options), self._looks)
        self._show_counts()
        self.show_remarks()
        self._clear.refresh()
        self._show_page()
        self._show_point()
        self.scene_changed.emit()

    def _show_counts(self) -> None:
        zoomed = self.plot.zoomed
        if not zoomed and self.foot.everything_button.hasFocus():
            self.plot.setFocus()
        self.foot.counts.setText(counts(self.scene) + (f" · {self.plot.in_view} in view" if zoomed else ""))
        self.foot.everything_button.setVisible(zoomed)

    def show_remarks(self) -> None:
        shown = self.scene
        cautions = remarks(shown)
        if not shown.points and self.pool.own.any() and not shown.missing:
            cautions = ("The filter hides all points; press Clear to show them.", *cautions)
        heard = limit(self.crossings, shown)
        self.plot.bands.limit = heard
        self.plot.bands.redraw()
        self.foot.show_remarks(cautions, (*self._of_row, *(() if heard is None else (in_words(heard, shown),))))

    def _show_page(self) -> None:
        there = bool(self.pool.own.any())
        self.pages.show_content(there)
        self.pages.invite(_INVITATION if self._read else "Reading takes and studies…", filling=not self._read)
        self.setFocusProxy(self.plot if there else next(iter(self.pages.empty.buttons), self.pages))

    def _show_point(self) -> None:
        point = self.plot.current
        other = None
        if point is not None and not point.published:
            from_a = self._a is not None and point.key != self._a.take and comparable(point, self._a)
            other = self._a if from_a else reference_of(point)
        shown, count = self.plot.scene, len(self.plot.selected)
        at = None if point is None else shown.index[point.key]
        if at is None or at in shown.front:
            with QSignalBlocker(self.foot.slider):
                self.foot.slider.setRange(0, max(len(shown.walk) - 1, 0))
                self.foot.slider.setValue(0 if at is None else shown.walk.index(at))
        reason = why(point, shown, self.pool.measured)
        self.details.show_point(shown, point, count, other, self.filter.only is not None, reason)
