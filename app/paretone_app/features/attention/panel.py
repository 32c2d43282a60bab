"""Attention: diagonal or striped? The check phase's similarity map, and the attention of a chosen layer and step.

The panel knows neither the application's state nor the engine: methods in, signals out. Keys in the attention maps:
arrows move, plus and minus zoom, 0 shows all.
"""

from __future__ import annotations

import numpy as np
from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import (
    QCheckBox,
    QLabel,
    QWidget,
)

from paretone.models.base import AttentionCapture
from paretone_app.features.attention.plots import AttentionPlot, SimilarityGrid, attention_map, similarity_map
from paretone_app.numbers import fixed, general
from paretone_app.plotting.colour_bar import ColourBar
from paretone_app.shell.colours import Colours
from paretone_app.shell.theme import set_look
from paretone_app.widgets import build, sketching
from paretone_app.widgets.action import Action, ActionButton
from paretone_app.widgets.boxes import ComboBox
from paretone_app.widgets.invitation import Invited
from paretone_app.widgets.layouts import HBoxLayout, VBoxLayout

PERCENTILES = (100.0, 99.9, 99.0, 95.0, 90.0)
BRANCH_NAMES = {
    1: ("attention",),
    2: ("conditional", "unconditional"),
    3: ("speaker and text", "text only", "unconditional"),
}
_INVITATION = "Select a cell on the left, by mouse or by arrow keys and Space, to see its attention."
_LOG_DECADES = 4
"""A logarithmic scale ends this many decades below its upper end."""


class AttentionPanel(QWidget):
    """Left: which layers attend diagonally at which steps. Right: what the attention of one of them looks like."""

    cell_chosen = Signal(int, int)
    """Capture the attention of (layer, step), counted from 0."""

    def __init__(self, colours: Colours, capture: Action, parent: QWidget | None = None) -> None:
        """``capture`` captures the cell at the grid's cursor."""
        super().__init__(parent)
        self._capture = capture
        capture.explain(lambda: "" if self.grid.layers else "Load a flow model to see attention.")
        self._colours = colours
        self._captured: AttentionCapture | None = None
        self._names: tuple[str, ...] = ()
        self._cut: float | None = None
        self._plots: list[AttentionPlot] = []
        self._titles: list[QLabel] = []
        self._build()
        self.set_colours(colours)
        self._say(_INVITATION, "muted")
        self._show_similarity_scale()

    def _build(self) -> None:
        self.grid = SimilarityGrid(self._colours)
        self.grid.cell_activated.connect(self.cell_chosen)
        self.grid.cursor_moved.connect(self._show_cell)
        self.similarity_bar = ColourBar("Colours of the diagonal similarity", self._colours)
        self._cell = build.words("muted")
        title = QLabel("Diagonal similarity of the attention")
        title.setToolTip("⟨A, I⟩ / (‖A‖ √N): 1 if every frame attends only to itself, small for stripes and blur")
        title.setProperty("look", "title")
        left = build.column(title, (self.grid, 1), self._cell, self.similarity_bar)

        self._status = build.words()
        maps = QWidget()
        self._maps = build.fill(HBoxLayout(maps), ())
        self.levels_box = ComboBox()
        for percentile in PERCENTILES:
            name = "maximum" if percentile == 100 else f"{general(percentile)} %"
            self.levels_box.addItem(f"Brightest: {name}", percentile)
        self.levels_box.setCurrentIndex(PERCENTILES.index(99.0))
        self.levels_box.setAccessibleName("Percentile of the brightest colour")
        self.levels_box.setToolTip("Attention above this percentile has the brightest colour")
        self.levels_box.currentIndexChanged.connect(self._show_maps)
        self.log_box = build.named(QCheckBox("Logarithmic"), tip="Logarithmic colour scale")
        self.log_box.toggled.connect(self._show_maps)
        self.seconds_box = build.named(QCheckBox("Seconds"), tip="Axes in seconds instead of frames")
        self.seconds_box.toggled.connect(self._change_axes)
        self.attention_bar = ColourBar("Colours of the attention", self._colours)
        controls = HBoxLayout()
        for one in (self.levels_box, self.log_box, self.seconds_box):
            controls.addWidget(one)
        controls.addWidget(self.attention_bar, 1)
        self.pages = Invited(build.column((maps, 1), controls), _INVITATION, sketching.diagonal())
        self.pages.empty.add(ActionButton(self._capture))
        right = build.column(self._status, (self.pages, 1))
        em = self.fontMetrics().height()
        outer = VBoxLayout(self)
        outer.addWidget(build.splitter(Qt.Orientation.Horizontal, [(left, 2), (right, 3)], [24 * em, 40 * em], em))
        self._require_plots(0)
        self.setFocusProxy(self.grid)

    # --- Methods in --------------------------------------------------------------------------------------------------
    def set_layout(self, layers: int, steps: int) -> None:
        """Set the number of layers and steps, before anything is measured. Forgets similarities of another shape."""
        self.grid.set_layout(layers, steps)
        self._show_similarity_scale()

    def set_similarities(self, similarities: np.ndarray | None, cut: float | None = None) -> None:
        """Show the check phase's (layers, steps) similarities, NaN where not yet measured. Cells from ``cut`` on are
        marked; without a cut (while the check runs) none are."""
        self._cut = cut
        self.grid.show_similarities(np.full((0, 0), np.nan) if similarities is None else similarities, cut)
        self._show_similarity_scale()
        self._show_titles()

    def set_times(self, times: tuple[float, ...]) -> None:
        """The flow time of each step, to be shown on the axis."""
        self.grid.set_times(times)

    def begin_capture(self, layer: int, step: int) -> None:
        """A capture runs."""
        self._say(f"Capturing the attention of layer {layer + 1} at step {step + 1}…", "title")

    def show_capture(self, captured: AttentionCapture, names: tuple[str, ...] = ()) -> None:
        """Show the attention of one layer at one step; ``names`` of the branches, when not the usual ones."""
        before = self._captured
        same_shape = before is not None and (before.frames, before.frame_seconds) == (
            captured.frames,
            captured.frame_seconds,
        )
        self._captured = captured
        branches = len(captured.maps)
        self._names = names or BRANCH_NAMES.get(branches, tuple(f"branch {one + 1}" for one in range(branches)))
        same_shape = same_shape and sum(not plot.isHidden() for plot in self._plots) == branches
        self._require_plots(branches)
        self.grid.show_captured((captured.layer, captured.step))
        pooled = captured.maps.shape[-1]
        text = f"{self.grid.place_text(captured.layer, captured.step)}: {captured.frames} frames"
        if pooled != captured.frames:
            text += f", drawn as {pooled} × {pooled}"
        self._say(f"{text}; the dashed lines end the prompt.", "title")
        self._show_titles()
        self._show_maps()
        self._change_axes(keep=same_shape)

    def show_failure(self, sentence: str) -> None:
        """The capture failed, or was cancelled; the last map stays."""
        self._say(sentence, "warning")

    def clear_capture(self) -> None:
        """Forget the captured attention, for example because another model was loaded."""
        self._captured = None
        self.grid.show_captured(None)
        self.attention_bar.set_ends(None)
        self._require_plots(0)
        self._say(_INVITATION, "muted")

    def set_colours(self, colours: Colours) -> None:
        self._colours = colours
        self.grid.set_colours(colours)
        self.similarity_bar.set_map(similarity_map(colours), colours)
        self.attention_bar.set_map(attention_map(colours), colours)
        for plot in self._plots:
            plot.set_colours(colours)

    @property
    def status(self) -> str:
        """The sentence above the maps."""
        return self._status.text()

    # --- Showing -----------------------------------------------------------------------------------------------------
    def _say(self, sentence: str, look: str) -> None:
        self._status.setText(sentence)
        self._status.setVisible(not self.pages.is_empty)
        self.pages.invite(sentence)
        self._status.setAccessibleName(sentence)
        set_look(self._status, look)

    def _show_cell(self, layer: int, step: int) -> None:
        self._capture.refresh()
        self._cell.setText(self.grid.describe(layer, step) if self.grid.layers else "")

    def _show_similarity_scale(self) -> None:
        self.similarity_bar.set_ends(self.grid.ends)
        self._show_cell(*self.grid.cursor_cell)

    def _require_plots(self, count: int) -> None:
        while len(self._plots) < count:
            plot, title = AttentionPlot(self._colours), QLabel()
            title.setWordWrap(True)
            title.setAlignment(Qt.AlignmentFlag.AlignCenter)
            column = VBoxLayout()
            column.addWidget(title)
            column.addWidget(plot, 1)
            self._maps.addLayout(column, 1)
            plot.section_changed.connect(lambda plot=plot: self._follow_section(plot))
            plot.setAccessibleName(f"Attention map {len(self._plots) + 1}")
            self._plots.append(plot)
            self._titles.append(title)
        for index, (plot, title) in enumerate(zip(self._plots, self._titles, strict=True)):
            plot.setVisible(index < count)
            title.setVisible(index < count)
        for one in (self.levels_box, self.log_box, self.seconds_box):
            one.setEnabled(count > 0)
        self.pages.show_content(count > 0)

    def _show_titles(self) -> None:
        if self._captured is None:
            return
        for index, name in enumerate(self._names):
            text = f"<b>{name}</b>"
            said = f"{name} branch"
            if index < len(self._captured.similarities):
                value = self._captured.similarities[index]
                text += f"<br>similarity {fixed(value, 3)}"
                said += f", diagonal similarity {fixed(value, 3)}"
                if self._cut is not None:
                    kind = "diagonal" if value >= self._cut else "striped or spread"
                    text += f": {kind}"
                    said += f", {kind} by the cut of the check phase, {fixed(self._cut, 3)}"
            self._titles[index].setText(text)
            self._plots[index].setAccessibleName(f"Attention map of the {name} branch")
            plot = self._plots[index]
            plot.summary = f"{said}. Keys to the right, queries down. Arrows move, plus and minus zoom, 0 shows all."
            plot.refresh()

    def _show_maps(self) -> None:
        if self._captured is None:
            return
        maps = self._captured.maps
        high = float(np.percentile(maps, self.levels_box.currentData())) or float(maps.max()) or 1.0
        logarithmic = self.log_box.isChecked()
        low = high * 10.0**-_LOG_DECADES if logarithmic else 0.0
        levels = (np.log10(low), np.log10(high)) if logarithmic else (low, high)
        for plot, one in zip(self._plots, maps, strict=False):
            plot.show_map(one, levels, logarithmic)
        self.attention_bar.set_ends((low, high), logarithmic)
        self._place_maps()

    def _change_axes(self, _checked: bool = False, keep: bool = False) -> None:
        self._place_maps()
        if self._captured is not None and not keep:
            self._plots[0].show_everything()

    def _place_maps(self) -> None:
        captured = self._captured
        if captured is None:
            return
        seconds = self.seconds_box.isChecked()
        scale, unit = (captured.frame_seconds, "s") if seconds else (1.0, "frame")
        boundary = captured.prompt_frames * scale if 0 < captured.prompt_frames < captured.frames else None
        for index, plot in enumerate(self._plots):
            plot.show_axes(captured.frames * scale, boundary, unit, titled=index == 0)

    def _follow_section(self, changed: AttentionPlot) -> None:
        """All branches show the same section."""
        for plot in self._plots:
            plot.show_sections(changed.sections)
