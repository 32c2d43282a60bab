"""Thousands of points for the trade-off view; run by hand, how long its updates take with them:

OMP_NUM_THREADS=1 QT_QPA_PLATFORM=offscreen .venv/bin/python -m tests.app.features.tradeoff.many_points
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import numpy as np

from app.features.tradeoff.model.points import STUDY, Point, Sound, in_order
from engine.measure.estimates import Estimate
from engine.setting.knobs import Values
from engine.setting.setting import Setting, UsedTechnique

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


def main() -> None:
    """Print median and worst of what each kind of update takes, painting included, in milliseconds of this thread."""
    from PySide6.QtWidgets import QApplication

    from app.features.tradeoff.model.points import published_points
    from app.features.tradeoff.panel import TradeoffPanel
    from app.shell.theme import Scheme, Theme
    from engine.studies.published import published

    application = QApplication([])
    theme = Theme(application)
    theme.apply(Scheme.LIGHT)
    panel = TradeoffPanel(theme.colours, published_points(published()))
    panel.resize(1000, 640)
    panel.show()
    points = many(2000)
    keys = [one.key for one in points]
    panel.show_points(points)

    def choose_axis(turn: int) -> None:
        panel.options_line.x_choice.setCurrentIndex(panel.options_line.x_choice.findData(AXES[turn % len(AXES)]))
        panel.options_line.x_choice.activated.emit(panel.options_line.x_choice.currentIndex())

    def choose_voice(turn: int) -> None:
        panel.filter_line.combos["voice"].setCurrentIndex(turn % 3)
        panel.filter_line.combos["voice"].activated.emit(turn % 3)

    updates: dict[str, Callable[[int], object]] = {
        "another axis": choose_axis,
        "words typed": lambda turn: panel.filter_line.search.setText(("a", "setting 1", "bella", "")[turn % 4]),
        "a voice": choose_voice,
        "a technique": lambda turn: panel.legend.buttons["ditreducio"].click(),
        "dominated": lambda turn: panel.options_line.dominated_box.toggle(),
        "intervals": lambda turn: panel.options_line.intervals_box.toggle(),
        "1000 points selected": lambda turn: panel.plot.take_selection(keys[turn % 2 :: 2]),
        "next on the front": lambda turn: panel.plot.walk(1),
        "logarithmic": lambda turn: panel.options_line.log_x_box.toggle(),
        "zoom": lambda turn: panel.plot.zoom(0.8 if turn < 10 else 1.25),
        "section moved": lambda turn: (panel.plot.zoom(0.9), panel.plot.move_section(0.1, 0.1)),
    }
    for name, update in updates.items():
        taken = []
        for turn in range(20):
            application.processEvents()
            begun = time.thread_time()
            update(turn)
            panel.details.repaint()
            application.processEvents()
            taken.append(1000 * (time.thread_time() - begun))
        print(f"{name:24s} median {statistics.median(taken):5.1f} ms, worst {max(taken):5.1f} ms")
        panel.clear_filter()


if __name__ == "__main__":
    main()
