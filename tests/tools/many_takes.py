"""Ten thousand takes: how long the list takes to open and to filter, and the window to show another workspace.
``python -m tests.tools.many_takes`` prints a table.

The library is a real one in a temporary folder, and the list is the panel of the window. Seconds are those of the
process, which other programs do not lengthen, and of the wall clock; both are medians.
"""

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import numpy as np
from PySide6.QtGui import QUndoStack

from paretone.setting.knobs import Values
from paretone.setting.library import Library
from paretone.setting.setting import Setting, UsedTechnique
from paretone.setting.take import Measurements, Metrics, Take
from paretone.techniques import techniques
from paretone_app.numbers import grouped

TAKES = 10_000
REPEATS = 7
LISTED_WITHIN, FILTERED_WITHIN, SWITCHED_WITHIN = 1.0, 0.05, 0.1
"""Seconds that opening the list, filtering it and showing another workspace may take."""
_WORDS = ("river", "candle", "garden", "window", "seven", "letter", "morning", "silver", "market", "thunder")
_RATE = 24_000
_TECHNIQUE = next(one for one in techniques() if one.artefact is not None)
_KNOB = _TECHNIQUE.knobs[0].name


def take(number: int) -> Take:
    """A take unlike the others; every second one is accelerated."""
    setting = Setting("f5-mini", Values({"steps": 8 + number % 24}), seed=number)
    if number % 2:
        setting = setting.with_technique(UsedTechnique(_TECHNIQUE.name, Values({_KNOB: 0.1 + number % 7 / 20})))
    text = " ".join(_WORDS[(number // 10**place) % 10] for place in range(4))
    created = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(1_700_000_000 + 60 * number)) + ".000+00:00"
    return Take(
        f"{number:032x}",
        created,
        f"{text.capitalize()}.",
        "anna",
        setting,
        _RATE,
        np.zeros(24, np.float32),
        measurements=Measurements(1.0 + number % 13, 2.0, 0.5, device="cpu"),
        label=f"Take {number}",
        metrics=Metrics(loudness=-20.0, silence=0.1),
        machine="A machine.",
    )


def fill(folder: Path, count: int) -> None:
    """Put ``count`` takes into the library in ``folder``."""
    with Library(folder) as library:
        for number in range(count):
            library.add(take(number))
            if (number + 1) % 1000 == 0:
                print(f"{number + 1} takes are kept.", file=sys.stderr, flush=True)


def measured(library: Library) -> list[tuple[str, float, float, float]]:
    """An action, its CPU and wall seconds, and its limit."""
    from PySide6.QtWidgets import QApplication

    from paretone_app.features.takes.panel import TakesPanel
    from paretone_app.results.takes import KeptTakes, OpenedLibrary
    from paretone_app.shell.colours import LIGHT
    from tests.app.acting import NamedActs

    application = QApplication.instance() or QApplication([])
    panels: list[TakesPanel] = []

    def opened() -> None:
        panels.append(TakesPanel(KeptTakes(OpenedLibrary(library)), LIGHT, NamedActs(), QUndoStack()))
        panels[-1].resize(1200, 600)
        panels[-1].show()
        application.processEvents()

    def filtered(words: str) -> Callable[[], None]:
        def run() -> None:
            panels[-1].search.clear()
            application.processEvents()
            begun[:] = [time.process_time(), time.perf_counter()]
            panels[-1].search.setText(words)
            application.processEvents()

        return run

    begun = [0.0, 0.0]
    rows: list[tuple[str, float, float, float]] = []
    for title, run, limit in (
        ("the list opens", opened, LISTED_WITHIN),
        ("filter: one letter", filtered("r"), FILTERED_WITHIN),
        ("filter: two words", filtered("river candle"), FILTERED_WITHIN),
        ("filter: a technique", filtered(_TECHNIQUE.name), FILTERED_WITHIN),
        ("filter: nothing fits", filtered("nothing of the kind"), FILTERED_WITHIN),
    ):
        times = []
        for _ in range(REPEATS):
            begun[:] = [time.process_time(), time.perf_counter()]
            run()
            times.append((time.process_time() - begun[0], time.perf_counter() - begun[1]))
        cpu, wall = (median(one[clock] for one in times) for clock in (0, 1))
        rows.append((title, cpu, wall, limit))
    for panel in panels:
        panel.close()
    return rows


def switched(folder: Path) -> list[tuple[str, float, float, float]]:
    """As :func:`measured`, for each workspace of the real window with the library in ``folder``."""
    from PySide6.QtWidgets import QApplication

    from paretone_app.__main__ import make_window

    application = QApplication.instance() or QApplication([])
    assert isinstance(application, QApplication)
    window = make_window(application, str(folder))
    window.resize(1440, 900)
    window.show()
    while not window.is_built or not window.state.selection.ready:
        application.processEvents()
    taken: dict[str, list[tuple[float, float]]] = {}
    for _ in range(REPEATS):
        for workspace in window.workspaces.there:
            for _ in range(200):
                application.processEvents()  # What is drawn later is not part of the next switch.
            begun = time.process_time(), time.perf_counter()
            window.workspaces.switch(workspace)
            application.processEvents()
            spent = time.process_time() - begun[0], time.perf_counter() - begun[1]
            taken.setdefault(f"switch to {workspace.title}", []).append(spent)
    window.close()
    while not window.is_closed:
        application.processEvents()
    return [
        (title, median(cpu for cpu, _ in times), median(wall for _, wall in times), SWITCHED_WITHIN)
        for title, times in taken.items()
    ]


def main() -> int:
    """Fill a library, measure, and print a table; 1 when something takes longer than it may."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--takes", type=int, default=TAKES, help="how many (default: %(default)s)")
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    count = parser.parse_args().takes
    with tempfile.TemporaryDirectory(prefix="paretone-many-takes-") as name:
        fill(Path(name, "takes"), count)
        with Library(Path(name, "takes")) as library:
            rows = measured(library)
        rows += switched(Path(name))
    print(f"| {grouped(count)} takes | CPU (ms) | wall (ms) | may take (ms) |\n|---|---|---|---|")
    for title, cpu, wall, limit in rows:
        print(f"| {title} | {1000 * cpu:.0f} | {1000 * wall:.0f} | {1000 * limit:.0f} |")
    return int(any(cpu > limit for _, cpu, _, limit in rows))


if __name__ == "__main__":
    sys.exit(main())
