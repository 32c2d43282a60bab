"""Hours in the real window: ``python -m tests.tools.endurance --hours 1``.

The real engine's thread, the bundled models, and a sound output that plays to nobody where one can be had. Each round
is a line of ``log.jsonl`` in ``--folder``, and the curve is ``curve.svg`` there, both up to date at any time. Ctrl+C
ends the run after cancelling what runs; the rounds so far are judged.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from paretone.own_process import cap_threads, share_one_heap
from tests.app.sharing import cancel_all

if TYPE_CHECKING:
    from PySide6.QtWidgets import QApplication

    from paretone_app.shell.window import MainWindow
    from tests.tools.endurance.doing import Doing
    from tests.tools.endurance.verdict import RoundLine

PASSED, FAILED, TOO_SHORT = 0, 1, 3
"""Exit codes: level, not level or an action failed, too few rounds to say."""


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parse(arguments)
    cap_threads()
    share_one_heap()
    if not os.environ.get("DISPLAY"):
        os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    import qasync
    from PySide6.QtWidgets import QApplication

    from tests.tools.endurance.verdict import why_not_read
    from tests.tools.null_sink import sound_to_nobody

    if reason := why_not_read():
        print(reason, file=sys.stderr)
        return FAILED
    folder = Path(options.folder)
    folder.mkdir(parents=True, exist_ok=True)
    application = QApplication(sys.argv[:1])
    application.setQuitOnLastWindowClosed(False)
    with tempfile.TemporaryDirectory(prefix="paretone-endurance-") as own, sound_to_nobody():
        # Whatever is left in there was left by the run.
        temporary = Path(own) / "temporary"
        temporary.mkdir()
        os.environ["TMPDIR"] = tempfile.tempdir = str(temporary)
        with asyncio.Runner(loop_factory=lambda: qasync.QEventLoop(application)) as runner:
            return runner.run(_run(application, Path(own), folder, options))


async def _run(application: QApplication, own: Path, folder: Path, options: argparse.Namespace) -> int:
    from paretone_app.__main__ import catch_exceptions, make_window, tell_qt_messages
    from paretone_app.shell.headless_tour import started
    from tests.tools.endurance import verdict
    from tests.tools.endurance.doing import Doing

    window = make_window(application, str(own / "data"))
    catch_exceptions(window)
    tell_qt_messages(window)
    loop = asyncio.get_running_loop()
    closed = loop.create_future()
    window.closed.connect(lambda: None if closed.done() else closed.set_result(None))
    window.show()
    code = FAILED
    lines: list[verdict.RoundLine] = []
    try:
        await started(window)
        doing = Doing(window, own, options.seed, options.models or (), _print if options.verbose else lambda line: None)
        task = loop.create_task(_rounds(window, doing, lines, folder, options))
        _cancel_on_interrupt(task, loop)
        try:
            await task
        except asyncio.CancelledError:
            print("Interrupted: closing.", flush=True)
            cancel_all(window.jobs)
        found = verdict.judge(lines)
        print(*found.sentences, sep="\n")
        print({True: "Passed.", False: "Not passed.", None: "Too short to tell."}[found.passed], flush=True)
        code = {True: PASSED, False: FAILED, None: TOO_SHORT}[found.passed]
    except Exception:  # The window has to close in any case.
        traceback.print_exc()
    window.close()
    await closed
    return code


async def _rounds(
    window: MainWindow, doing: Doing, lines: list[RoundLine], folder: Path, options: argparse.Namespace
) -> None:
    """Round after round, each read and written down."""
    from tests.tools.endurance import verdict

    began = time.monotonic()
    warm: Counter[str] = Counter()
    with open(folder / "log.jsonl", "w", encoding="utf-8", buffering=1) as log:
        number = 0
        while True:
            types: Counter[str] = Counter()
            line = verdict.RoundLine(
                number,
                round(time.monotonic() - began, 1),
                verdict.read(types),
                doing.takes,
                len(window.results.library),
                doing.done,
                tuple(doing.failures),
                tuple(doing.refused),
                verdict.grown(warm, types) if warm else {},
                dict(doing.seconds),
            )
            if number == verdict.WARM_UP:
                warm = types
            doing.takes = doing.done = 0
            doing.failures.clear()
            doing.refused.clear()
            doing.seconds.clear()
            lines.append(line)
            log.write(verdict.encoded(line) + "\n")
            verdict.write_curve(lines, folder / "curve.svg")
            _say(line)
            if number >= options.rounds if options.rounds else line.seconds >= 3600 * options.hours:
                return
            await doing.round(options.only or ())
            number += 1


def _print(line: str) -> None:
    print(line, flush=True)


def _say(line: RoundLine) -> None:
    now = line.reading
    print(
        f"Round {line.number}, {line.seconds / 60:.1f} min: {now.memory:.0f} MB, {now.threads} threads, {now.files} "
        f"files, {now.qt_objects} objects of Qt, {now.objects} of Python; {line.takes} takes, {line.done} actions"
        + "".join(f"\n  {one}" for one in line.failures),
        flush=True,
    )


def _cancel_on_interrupt(task: asyncio.Task[None], loop: asyncio.AbstractEventLoop) -> None:
    def interrupt(number: int, frame: FrameType | None) -> None:
        loop.call_soon_threadsafe(task.cancel)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, interrupt)


def _hours(text: str) -> float:
    hours = float(text)
    if not 0.0 < hours <= 1000.0:
        raise argparse.ArgumentTypeError(f"{text} is no number of hours above 0 and up to 1000")
    return hours


def _rounds_wanted(text: str) -> int:
    rounds = int(text)
    if rounds < 1:
        raise argparse.ArgumentTypeError(f"{text} is no number of rounds above 0")
    return rounds


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.tools.endurance",
        description="Hours in the real window, reading memory, threads, files and objects after every round.",
        epilog=f"Exit code: {PASSED} passed, {FAILED} not passed, {TOO_SHORT} too few rounds to tell.",
    )
    much = parser.add_mutually_exclusive_group()
    much.add_argument("--hours", type=_hours, default=1.0, help="begin rounds for so long (default: %(default)g)")
    much.add_argument("--rounds", type=_rounds_wanted, default=0, help="this many rounds instead")
    parser.add_argument("--folder", default="endurance", help="for log.jsonl and curve.svg (default: %(default)s)")
    parser.add_argument("--models", nargs="+", metavar="MODEL", help="only these (default: all bundled ones)")
    parser.add_argument("--only", nargs="+", metavar="ACTION", help="only these actions, to look for a leak")
    parser.add_argument("--seed", type=int, default=0, help="what is drawn (default: %(default)s)")
    parser.add_argument("--verbose", action="store_true", help="say what is done")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
