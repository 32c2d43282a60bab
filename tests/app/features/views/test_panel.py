"""The Views panel as people use it: real key presses on the real widget."""

import gc
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import QCoreApplication, Qt
from PySide6.QtTest import QSignalSpy
from pytestqt.qtbot import QtBot
from shiboken6 import isValid

from paretone.models.base import MelFlow, ModelInfo
from paretone.session.events import Progress
from paretone.views import views
from paretone.views.figure import Axis, Curve, Figure, Lines
from paretone_app.features.views.panel import ViewsPanel
from paretone_app.plotting.canvas import FigureCanvas
from paretone_app.plotting.words import Legend
from paretone_app.shell.colours import DARK, LIGHT
from paretone_app.shell.file_dialogs import PLOTS
from paretone_app.shell.window import MainWindow
from paretone_app.shell.workspaces import recolour
from paretone_app.widgets.action import Action, ActionButton
from tests.app.acting import acts, press
from tests.app.conftest import in_front
from tests.app.holding import Posts
from tests.app.plotting.test_sheet import BARS, LINES, MAP
from tests.engine.views.test_figure import figure as of

KEY = Qt.Key
INFO = ModelInfo("m", "M", "flow", "", "", "f" * 64, "", "cpu", "float32", 24000, 8, 2, 0, "")


def loaded(layers: int, family: str, **more: object) -> ModelInfo:
    return replace(INFO, layers=layers, family=family, **more)


@pytest.fixture
def panel(qtbot: QtBot) -> ViewsPanel:
    panel = in_front(ViewsPanel(LIGHT, *acts(2), [Action(one) for one in PLOTS]), qtbot, 1000, 480)
    panel.set_model(loaded(8, "flow"))
    return panel


def figure(name: str = views()[0].name, *panels: object) -> Figure:
    made = of(*(panels or (MAP, LINES, BARS)))
    return Figure(name, made.title, made.question, made.source, made.panels, made.caption, made.provenance)


def test_a_view_is_chosen_set_and_computed_by_keys(panel: ViewsPanel) -> None:
    wanted = QSignalSpy(panel.compute_button.action.triggered)
    panel.setFocus()
    assert panel.chooser.hasFocus()
    press(panel.chooser, KEY.Key_End, KEY.Key_Home)
    editor = panel.knobs.editor("first_layer")
    editor.setFocus()
    press(editor, KEY.Key_Up)
    press(panel.compute_button, KEY.Key_Space)
    assert wanted.count() == 1
    assert panel.view.name == "temporal-redundancy" and panel.values == {"first_layer": 5, "second_layer": 7}


def test_knobs_are_kept_for_each_view_and_follow_the_model(panel: ViewsPanel) -> None:
    for view in reversed(views()):
        panel.choose(view.name)
        QCoreApplication.processEvents()
        room = panel.knobs.parentWidget().visibleRegion().boundingRect().right()
        assert all(one.geometry().right() <= room for one in panel.knobs.reachable if one.isVisible()), "none is cut"
    panel.knobs.changed.emit("second_layer", 8)
    press(panel.chooser, KEY.Key_Down)
    assert panel.knobs.knobs == ()
    press(panel.chooser, KEY.Key_Up)
    assert panel.values["second_layer"] == 8
    panel.set_model(loaded(3, "flow"))
    assert dict(panel.values) == {"first_layer": 1, "second_layer": 3}, "a model of three layers has no eighth"


def test_only_views_that_the_model_can_answer_are_offered(panel: ViewsPanel) -> None:
    panel.set_model(loaded(12, "language"))
    offered = [panel.chooser.itemData(index) for index in range(panel.chooser.count())]
    assert offered == [one.name for one in views() if "language" in one.families]
    panel.set_model(loaded(12, "language", mel_flow=MelFlow((), transformer=True, layers=4)))
    assert panel.chooser.count() > len(offered)
    panel.choose("temporal-redundancy")
    assert panel.values == {"first_layer": 2, "second_layer": 4}, "layers of its flow"
    assert panel.chooser.findData("order-of-convergence") > 0 > panel.chooser.findData("codebooks")
    panel.set_model(loaded(8, "flow"))
    assert panel.chooser.findData("temporal-redundancy") >= 0
    assert all("flow" in one.families for one in views() if panel.chooser.findData(one.name) >= 0)
    # Without a model it says what to do.
    panel.set_model(None)
    panel.compute_button.action.set_reason("The model is not loaded yet.")
    assert not panel.compute_button.isEnabled() and panel.pages.invitation.isVisible()
    assert panel.state.text() == panel.pages.invitation.text() == "The model is not loaded yet."


def test_progress_and_cancel_are_there_while_it_runs(panel: ViewsPanel) -> None:
    assert panel.cancel_button.isHidden()
    panel.begin("tables")
    panel.progress.show_progress(30, 120, 42.0)
    assert panel.progress.isVisible() and panel.state.text().startswith("Computing: ")
    assert (panel.progress.value(), panel.progress.maximum()) == (30, 120)
    assert "42 s left" in panel.progress.format()
    panel.end("Cancelled; no results were kept.")
    panel.chooser.setCurrentIndex(panel.chooser.findData("tables"))
    assert panel.state.text().startswith("Cancelled")
    assert panel.compute_button.isEnabled() and panel.progress.isHidden()


def test_the_last_figure_of_each_view_is_kept(panel: ViewsPanel) -> None:
    (save,) = [one for one in panel.findChildren(ActionButton) if one.text() == "svg"]
    assert save.toolTip() == "Compute a figure first."
    first, second = figure(views()[0].name), figure(views()[1].name, LINES)
    panel.show_figure(first)
    panel.show_figure(second)
    panel.set_model(loaded(6, "flow"))  # Another of the family, with which nothing was computed.
    assert panel.canvas.figure is first and panel.state.text().startswith(first.provenance.model)
    assert len(panel.canvas.plots) == 3 and panel.caption.text() == first.caption
    press(panel.chooser, KEY.Key_Down)
    assert panel.canvas.figure is second
    press(panel.chooser, KEY.Key_Up)
    assert panel.canvas.figure is first
    saved = QSignalSpy(save.action.triggered)
    press(save, KEY.Key_Space)
    assert saved.count() == 1


def test_figures_share_their_frames(panel: ViewsPanel) -> None:
    panel.show_figure(figure())
    first = panel.canvas.grab().toImage()
    frames = list(panel.canvas.frames)
    panel.show_figure(figure(views()[0].name, MAP))
    assert panel.canvas.frames == frames, "what was taken out would be left to Python's collector, on any thread"
    assert len(panel.canvas.plots) == 1
    assert [one.isVisible() for one in frames].count(True) == 2, "the map and its scale of colours"
    assert panel.canvas.grab().toImage() != first
    recolour(panel, DARK)
    recolour(panel, LIGHT)
    press(panel.canvas, KEY.Key_Right)
    assert panel.reading.text().startswith("Map.")
    panel.show_figure(figure())
    assert panel.canvas.grab().toImage() == first, "nothing of the other figure is left"


def test_a_legend_covers_no_curve_and_few_values_are_the_marks(panel: ViewsPanel) -> None:
    # From corner to corner, so that none is free.
    curves = tuple(Curve(f"{end} first", (1.0, 2.0), (end, 1.0 - end)) for end in (0.0, 1.0))
    panel.show_figure(figure(views()[0].name, Lines("Crossing", Axis("Draft length"), Axis("Speed"), curves)))
    panel.grab()
    (plot,) = panel.canvas.plots
    (legend,) = (one for one in plot.childItems() if isinstance(one, Legend) and one.entries)
    places = [plot.place(1 + x, end + x * (1 - 2 * end)) for x in np.linspace(0.0, 1.0, 50) for end in (0.0, 1.0)]
    assert plot.area.contains(legend.box) and not any(map(legend.box.contains, places))
    assert plot.bottom.spelled(plot.area.width()) == ["1", "2"]


def test_a_figure_has_a_window_of_its_own(panel: ViewsPanel, qtbot: QtBot) -> None:
    panel.show_figure(figure())
    press(panel.enlarge_button, KEY.Key_Space)
    (large,) = (one for one in panel.findChildren(FigureCanvas) if one.isWindow())
    assert large.figure is panel.figure
    recolour(panel, DARK)
    assert large.view.backgroundBrush().color().name() == DARK.base
    large.close()


def opened(window: MainWindow, name: str) -> ViewsPanel:
    window.workspaces.go_to("views")
    panel = window.panels["views"]
    panel.chooser.setCurrentIndex(panel.chooser.findData(name))
    return panel


def test_a_view_is_computed_and_written(borrowed_window: MainWindow, qtbot: QtBot, tmp_path: Path) -> None:
    borrowed_window.state.selection.set_option("steps", 3)
    for name in ("temporal-redundancy", "attention-similarity", "branch-redundancy"):
        panel = opened(borrowed_window, name)
        press(panel.compute_button, KEY.Key_Space)
        assert panel.cancel_button.isEnabled()
        qtbot.waitUntil(lambda: not borrowed_window.jobs.busy)
        assert len(panel.canvas.plots) == len(panel.figure.panels)
    made = panel.figure.provenance
    assert made.setting.options == borrowed_window.state.selection.options
    assert made.utterances[0].text == borrowed_window.state.selection.text
    assert panel.caption.text() == panel.figure.caption and panel.compute_button.isEnabled()
    borrowed_window.features["views"].write(panel.figure, tmp_path / "figure.csv")
    assert (tmp_path / "figure.csv").read_text(encoding="utf-8") == panel.figure.to_csv()


def test_a_view_is_cancelled(borrowed_window: MainWindow, shared_posts: Posts, qtbot: QtBot) -> None:
    panel = opened(borrowed_window, "ablation")
    progress: list[Progress] = []
    borrowed_window.bridge.progress.connect(progress.append)
    shared_posts.hold_at(Progress)
    press(panel.compute_button, KEY.Key_Space)
    qtbot.waitUntil(lambda: bool(progress))
    press(panel.cancel_button, KEY.Key_Space)
    shared_posts.go_on()
    qtbot.waitUntil(lambda: not borrowed_window.jobs.busy)
    assert panel.figure is None and panel.compute_button.isEnabled()
    assert panel.state.text().startswith("Cancelled")


def test_what_cannot_be_computed_is_said_where_it_was_asked_for(borrowed_window: MainWindow, qtbot: QtBot) -> None:
    panel = opened(borrowed_window, "guidance-weight")
    press(panel.compute_button, KEY.Key_Space)
    qtbot.waitUntil(lambda: not borrowed_window.jobs.busy)
    assert "train some, for example with w = 0.5" in panel.state.text()
    panel.chooser.setCurrentIndex(0)
    assert "train some" not in panel.state.text()


def test_changing_views_leaves_the_windows_actions_alone(borrowed_window: MainWindow, qtbot: QtBot) -> None:
    for one in views():
        if "flow" in one.families:
            opened(borrowed_window, one.name)
    qtbot.wait(50)
    gc.collect()
    assert isValid(borrowed_window.action.undo)
