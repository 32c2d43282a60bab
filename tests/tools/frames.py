"""``python -m tests.tools.frames``: times of the window's frames while eight lanes scroll with the sound.

In the real window, on the bundled flow model, Listen alone in 1440 × 900 and four times nearer than the whole take, and
with a sound output that plays to nobody where one can be had. First while nothing else runs, then during a synthesis. A
frame's time is that from the beginning of its painting to the beginning of the next one's. Run it under Xvfb where
there is no display: ``xvfb-run -a -s "-screen 0 1440x900x24" .venv/bin/python -m tests.tools.frames``.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from paretone.figures.scatter import Scale
from paretone.own_process import cap_threads, share_one_heap

if TYPE_CHECKING:
    from PySide6.QtWidgets import QApplication

    from paretone_app.shell.window import MainWindow

TEXT = (
    "The birch canoe slid on the smooth planks. Glue the sheet to the dark blue background. It is easy to tell the "
    "depth of a well. These days a chicken leg is a rare dish. Rice is often served in round bowls."
)
LANES, NEARER = 8, 4
MEDIAN, P99 = 16.0, 33.0
"""Milliseconds that are wanted."""


class Watch:
    """Begins of the canvas's paintings while it scrolls, and what each took."""

    def __init__(self) -> None:
        from paretone_app.features.listen.canvas import Canvas

        self.begun: list[float] = []
        self.took: list[float] = []
        paint, start = Canvas.paintEvent, [-1.0]

        def timed(canvas: Canvas, event: object) -> None:
            began = time.perf_counter()
            paint(canvas, event)  # type: ignore[arg-type]
            if canvas.time.low != start[0]:
                start[0] = canvas.time.low
                self.begun.append(began)
                self.took.append(time.perf_counter() - began)

        Canvas.paintEvent = timed  # type: ignore[method-assign, assignment]

    def figures(self, what: str) -> dict[str, object]:
        """Of the frames since the last time. A jump back to the start of the loop is a frame as well."""
        apart, took = 1000 * np.diff(self.begun), 1000 * np.array(self.took)
        self.begun, self.took = [], []
        return {
            "what": what,
            "frames": len(apart) + 1,
            "median_ms": round(float(np.median(apart)), 2),
            "p99_ms": round(float(np.percentile(apart, 99)), 2),
            "longest_ms": round(float(apart.max()), 2),
            "painting_median_ms": round(float(np.median(took)), 2),
            "load_average": round(os.getloadavg()[0], 2),
        }


async def measure(window: MainWindow, seconds: float, steps: int, watch: Watch) -> list[dict[str, object]]:
    from paretone_app.features.listen.presenter import ListenPresenter
    from paretone_app.features.player.presenter import PlayerPresenter
    from paretone_app.features.presenter import built
    from paretone_app.shell.headless_tour import perform, started, until
    from tests.app.sharing import cancel_all

    await started(window)
    selection, comparison = window.state.selection, window.state.comparison
    selection.set_text(TEXT)
    selection.set_option("steps", steps)
    for seed in (0, 1):
        selection.set_seed(seed)
        await perform(window, window.action.baseline)
        comparison.set_b(comparison.take_a)
    takes = [one for one in comparison.lanes if one is not None]
    # Two takes are made; the others are copies of them with noise, since only their pixels matter.
    draw = np.random.default_rng(0)
    for number in range(len(takes), LANES):
        one = takes[number % 2]
        noise = (0.001 * number * draw.standard_normal(len(one.samples))).astype(np.float32)
        takes.append(replace(one, id=f"{number:032x}", samples=one.samples + noise))
    comparison.arrange(takes)
    window.resize(1440, 900)
    window.workspaces.go_to("listen")
    window.workspaces.maximise()
    listen, player = built(window.features.find(ListenPresenter).listen), window.features.find(PlayerPresenter)
    canvas, deck = listen.canvas, player.deck
    await until(lambda: len(deck.analysed_takes) == LANES and not listen.finder.busy, window, patience=300.0)
    whole = canvas.whole.high
    span = whole / NEARER
    for start in np.arange(0.0, whole - span / 2, span):
        canvas.look(Scale(float(start), float(start) + span))
        await until(lambda: not listen.finder.busy, window, patience=300.0)
    canvas.follows = True
    found = []
    for what in ("playing", "playing during a synthesis"):
        if what != "playing":
            selection.set_option("steps", 32)
            selection.set_text(" ".join([TEXT] * 20))
            window.action.baseline.trigger()
            await until(lambda: deck.player.streaming, window, patience=300.0)
            deck.choose("B")
        await until(lambda: deck.complete, window)
        deck.set_loop((span / 2, whole - span / 2))
        deck.player.play()
        await until(lambda: deck.player.playing or bool(deck.player.problem), window)
        if deck.player.problem:
            print(f"{deck.player.problem} The playhead is moved by a clock instead.", file=sys.stderr)
        await asyncio.sleep(1.0)
        watch.figures(what) if len(watch.begun) > 2 else None
        await asyncio.sleep(seconds)
        found.append(watch.figures(what))
        print(json.dumps(found[-1]), flush=True)
    cancel_all(window.jobs)
    await until(lambda: not window.jobs.busy, window)
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.tools.frames", description=__doc__.partition(".")[0])
    parser.add_argument("--seconds", type=float, default=20.0, help="of each of the two parts")
    parser.add_argument("--steps", type=int, default=4, help="solver steps of the takes in the lanes")
    options = parser.parse_args(arguments)
    cap_threads()
    share_one_heap()
    if not os.environ.get("DISPLAY"):
        os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    import qasync
    from PySide6.QtWidgets import QApplication

    from tests.tools.null_sink import sound_to_nobody

    application = QApplication(sys.argv[:1])
    application.setQuitOnLastWindowClosed(False)
    with sound_to_nobody(), asyncio.Runner(loop_factory=lambda: qasync.QEventLoop(application)) as runner:
        return runner.run(_run(application, options))


async def _run(application: QApplication, options: argparse.Namespace) -> int:
    from paretone_app.__main__ import make_window, tell_qt_messages

    watch = Watch()
    with tempfile.TemporaryDirectory(prefix="paretone-") as data:
        window = make_window(application, data)
        tell_qt_messages(window)
        closed = asyncio.get_running_loop().create_future()
        window.closed.connect(lambda: closed.set_result(None))
        window.show()
        try:
            found = await measure(window, options.seconds, options.steps, watch)
        finally:
            window.close()
            await closed
    reached = all(one["median_ms"] <= MEDIAN and one["p99_ms"] <= P99 for one in found)  # type: ignore[operator]
    print(f"{'Within' if reached else 'Beyond'} a median of {MEDIAN:.0f} ms and a 99th percentile of {P99:.0f} ms.")
    return 0 if reached else 1


if __name__ == "__main__":
    sys.exit(main())
