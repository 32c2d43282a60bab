"""Thousands of points for the trade-off view; run by hand, how long its updates take with them:

OMP_NUM_THREADS=1 QT_QPA_PLATFORM=offscreen .venv/bin/python -m tests.tools.many_points
"""

import statistics
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from PySide6.QtCore import QEvent, QPointF, Qt
from PySide6.QtGui import QMouseEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from paretone.measure.estimates import Estimate
from paretone.setting.knobs import Values
from paretone.setting.setting import Setting, UsedTechnique
from paretone.techniques.registry import in_order
from paretone_app.features.tradeoff.panel import TradeoffPanel
from paretone_app.results.points import STUDY, Point, Sound, published_points
from paretone_app.shell.theme import Scheme, Theme

NAMES = ("ditreducio", "steps", "guidance_free", "first_block", "error_curve", "guidance_interval")
AXES = ("speed_up", "real_time_factor", "ops_ratio")


def many(count: int) -> tuple[Point, ...]:
    """Settings of a study that use none, one or two techniques, with intervals in both directions."""
    random = np.random.default_rng(0)

    def estimate(value: float, spread: float) -> Estimate:
        return Estimate(value, value - spread, value + spread, 12, 4)

    found = []
    for number in range(count):
        techniques = in_order(random.choice(NAMES, random.integers(0, 3), replace=False).tolist())
        speed = float(random.uniform(1, 8))
        distance = float(max(0.0, random.normal(0.1 * speed, 0.1)))
        figures = {
            "speed_up": estimate(speed, 0.1),
            "real_time_factor": estimate(4 / speed, 0.05),
            "ops_ratio": estimate(1 / speed, 0.0),
            "log_mel_distance": estimate(distance, 0.02),
            "word_error_rate": estimate(distance / 3, 0.01),
        }
        setting = Setting("f5-mini", Values({"steps": 16}), tuple(UsedTechnique(name) for name in techniques))
        voice = ("anna", "bella")[number % 2]
        sounds = (Sound(f"{number:032x}", "A sentence.", voice, 0),)
        title = f"Setting {number}"
        found.append(
            Point(
                f"k{number}", STUDY, title, "A study", "F5 mini", techniques, figures, {}, setting, sounds, finished=12
            )
        )
    return tuple(found)


def on_the_front(count: int) -> tuple[Point, ...]:
    """The same, each a little faster and a little worse than the one before: all of them are on the front."""
    found = []
    for number, point in enumerate(many(count)):
        speed, distance = 1 + 7 * number / count, 0.8 * number / count
        figures = {
            **point.figures,
            "speed_up": Estimate(speed, speed - 0.1, speed + 0.1, 12, 4),
            "log_mel_distance": Estimate(distance, distance - 0.02, distance + 0.02, 12, 4),
        }
        found.append(replace(point, figures=figures))
    return tuple(found)


def main(count: int = 2000, along: int = 10_000) -> None:
    """Print median and worst of what each kind of update takes, painting included, in milliseconds of this thread: with
    ``count`` points, then dragging along a front of ``along``."""
    application = QApplication([])
    from tests.app.features.tradeoff.using import panel_of

    theme = Theme(application)
    theme.apply(Scheme.LIGHT)
    panel = panel_of(published_points())
    panel.resize(1000, 640)
    panel.show()
    points = many(count)
    keys = [one.key for one in points]
    panel.show_points(points)

    def choose_axis(turn: int) -> None:
        panel.options_line.x_choice.setCurrentIndex(panel.options_line.x_choice.findData(AXES[turn % len(AXES)]))
        panel.options_line.x_choice.activated.emit(panel.options_line.x_choice.currentIndex())

    def choose_voice(turn: int) -> None:
        panel.filter_line.combos["voice"].setCurrentIndex(turn % 3)
        panel.filter_line.combos["voice"].activated.emit(turn % 3)

    def move_section() -> None:
        panel.plot.zoom(0.9)
        panel.plot.move_section(0.1, 0.1)

    updates: dict[str, Callable[[int], object]] = {
        "another axis": choose_axis,
        "words typed": lambda turn: panel.filter_line.search.setText(("a", "setting 1", "bella", "")[turn % 4]),
        "a voice": choose_voice,
        "a technique": lambda turn: panel.legend.buttons["ditreducio"].click(),
        "dominated": lambda turn: panel.options_line.boxes["dominated"].toggle(),
        "intervals": lambda turn: panel.options_line.boxes["intervals"].toggle(),
        "1000 points selected": lambda turn: panel.plot.take_selection(keys[turn % 2 :: 2]),
        "next on the front": lambda turn: panel.plot.walk(1),
        "logarithmic": lambda turn: panel.options_line.boxes["log_x"].toggle(),
        "zoom": lambda turn: panel.plot.zoom(0.8 if turn < 10 else 1.25),
        "section moved": lambda turn: move_section(),
    }
    for name, update in updates.items():
        _timed(application, panel, name, update)
        panel.clear_filter()
    panel.options_line.x_choice.setCurrentIndex(panel.options_line.x_choice.findData("speed_up"))
    panel.options_line.x_choice.activated.emit(panel.options_line.x_choice.currentIndex())
    panel.show_points(on_the_front(along))
    panel.show_front_playing(True, ())
    panel.plot.show_everything()
    plot, area = panel.plot, panel.plot.frame.area
    assert len(plot.scene.walk) == along
    plot.choose(plot.scene.points[plot.scene.walk[0]].key)
    QTest.mousePress(plot, Qt.MouseButton.LeftButton, pos=plot.drawn.place(plot.scene.walk[0]).toPoint())

    def drag(turn: int) -> None:
        x = round(area.left() + (0.1 + 0.037 * turn) * area.width())
        at = QPointF(x, area.center().y())
        move = QMouseEvent(
            QEvent.Type.MouseMove,
            at,
            plot.mapToGlobal(at),
            Qt.MouseButton.NoButton,
            Qt.MouseButton.LeftButton,
            Qt.KeyboardModifier.NoModifier,
        )
        application.sendEvent(plot, move)

    application.processEvents()
    _timed(application, panel, f"dragged along {along:,} points", drag)
    panel.close()
    panel.deleteLater()
    application.sendPostedEvents(None, QEvent.Type.DeferredDelete)


def _timed(
    application: QApplication, panel: TradeoffPanel, name: str, update: Callable[[int], object], turns: int = 20
) -> None:
    taken = []
    for turn in range(turns):
        application.processEvents()
        begun = time.thread_time()
        update(turn)
        panel.details.repaint()
        application.processEvents()
        taken.append(1000 * (time.thread_time() - begun))
    print(f"{name:34s} median {statistics.median(taken):5.1f} ms, worst {max(taken):5.1f} ms")


if __name__ == "__main__":
    main()
