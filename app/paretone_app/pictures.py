"""Pictures of the real window: ``python -m paretone_app.pictures FOLDER`` makes those of every workspace, and with
``--guides`` those that the guides show (:mod:`paretone_app.guide_pictures`).

What is to be seen is done first: the main job for the workspaces, what each picture needs for the guides. With
``--scale 1.5`` they are as a screen at 150 % shows them; sizes are in the desktop's own pixels, as the window has them.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
import traceback
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from paretone_app.shell.theme import Scheme

if TYPE_CHECKING:
    from PySide6.QtWidgets import QApplication, QWidget

    from paretone_app.shell.window import MainWindow

SIZES = ((1024, 768), (1440, 900), (1920, 1080))
SCHEMES = (Scheme.LIGHT, Scheme.DARK)
_QUALITY = 85
"""Of WebP: text stays sharp, and all pictures together stay below 3 MB."""
_SECONDS = 1.5
"""What a workspace has until its picture is taken: plots are drawn in turns of their own."""


def arranged(
    window: MainWindow, sizes: Sequence[tuple[int, int]] = SIZES, schemes: Sequence[Scheme] = SCHEMES
) -> Iterator[str]:
    """Bring each workspace into view in each size and scheme, in its default layout; the name of its picture."""
    for width, height in sizes:
        window.resize(width, height)
        window.workspaces.default_layout()
        window.notices.clear()
        for scheme in schemes:
            window.theme.apply(scheme)
            for workspace in window.workspaces.there:
                window.workspaces.switch(workspace)
                yield f"{workspace.name}-{width}x{height}-{scheme.value}"


async def take(window: MainWindow, folder: Path, sizes: Sequence[tuple[int, int]], steps: int) -> None:
    """Do the main job, with ``steps`` solver steps if that is not 0, and save all pictures in ``folder``. Raises
    :class:`paretone.errors.PlainError` with the reason when a job fails."""
    from paretone_app.shell.headless_tour import make_takes, until

    folder.mkdir(parents=True, exist_ok=True)
    window.show()
    await make_takes(window, steps, print)
    window.action["open_example"].trigger()
    await until(lambda: bool(window.results.studies), window)
    for name in arranged(window, sizes):
        await asyncio.sleep(_SECONDS)
        save(window, folder / f"{name}.webp")


async def take_for_guides(window: MainWindow, folder: Path, names: Collection[str] = (), steps: int = 0) -> None:
    """Save the pictures of the guides in ``folder``: all, or those called ``names``, with ``steps`` solver steps if
    that is not 0. Raises :class:`paretone.errors.PlainError` after the others where a job failed, or a panel had
    nothing to show."""
    from paretone.errors import PlainError
    from paretone_app.guide_pictures import PICTURES, settled
    from paretone_app.shell.headless_tour import started

    failed: list[str] = []
    folder.mkdir(parents=True, exist_ok=True)
    window.show()
    await started(window)
    if steps:
        window.state.selection.set_option("steps", steps)
    for one in PICTURES:
        if names and one.name not in names:
            continue
        try:
            async with one.shown(window) as widget:
                window.theme.apply(one.scheme)
                window.notices.clear()
                await settled(window)
                require_content(widget)
                save(widget, folder / f"{one.name}.webp")
        except PlainError as error:
            failed.append(f"{one.name}: {error}")
    if failed:
        raise PlainError("\n".join(failed))


def require_content(widget: QWidget) -> None:
    """Raise :class:`paretone.errors.PlainError` where ``widget`` still shows how it would be filled."""
    from paretone.errors import PlainError
    from paretone_app.widgets.invitation import Invited

    for one in (widget, *widget.findChildren(Invited)):
        if isinstance(one, Invited) and one.isVisibleTo(widget) and one.is_empty:
            raise PlainError(f"There is nothing to take a picture of yet: {one.empty.words.text()}")


def save(widget: QWidget, path: Path) -> None:
    """Save ``widget`` as it is now. Raises :class:`paretone.errors.PlainError` when ``path`` cannot be written."""
    from paretone.errors import PlainError

    if not widget.grab().toImage().save(str(path), quality=_QUALITY):
        raise PlainError(f"{path} could not be written.")
    print(f"Wrote {path}")


@contextmanager
def sound_to_nobody() -> Iterator[None]:
    """A sound server that plays to nobody, where one can be had: player and listening lab look as people meet them."""
    from paretone_app.audio.null_sink import NullSink, missing

    if missing():
        yield
        return
    with tempfile.TemporaryDirectory() as folder:
        sink = NullSink(Path(folder))
        sink.start()
        os.environ.update(sink.environment)
        os.environ.pop("DBUS_SESSION_BUS_ADDRESS", None)
        try:
            yield
        finally:
            sink.kill()


def main(arguments: Sequence[str] | None = None) -> int:
    """Take the pictures; the process's exit code."""
    options = _parse(arguments)
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    if options.scale != 1.0:
        os.environ["QT_SCALE_FACTOR"] = f"{options.scale:g}"
    import qasync
    from PySide6.QtWidgets import QApplication

    application = QApplication(sys.argv[:1])
    application.setQuitOnLastWindowClosed(False)
    with sound_to_nobody(), asyncio.Runner(loop_factory=lambda: qasync.QEventLoop(application)) as runner:
        return runner.run(_run(application, options))


async def _run(application: QApplication, options: argparse.Namespace) -> int:
    from paretone.errors import PlainError
    from paretone_app.__main__ import make_window, tell_qt_messages

    with tempfile.TemporaryDirectory(prefix="paretone-") as data:
        window = make_window(application, data)
        tell_qt_messages(window)
        closed = asyncio.get_running_loop().create_future()
        window.closed.connect(lambda: closed.set_result(None))
        code = 0
        try:
            folder = Path(options.folder)
            if options.guides is None:
                await take(window, folder, options.sizes or SIZES, options.steps)
            else:
                await take_for_guides(window, folder, options.guides, options.steps)
        except Exception as error:  # The window has to close in any case.
            if not isinstance(error, PlainError):
                traceback.print_exc()
            print(f"The pictures stopped: {error}", file=sys.stderr)
            code = 1
        window.close()
        await closed
    return code


def _size(text: str) -> tuple[int, int]:
    width, _, height = text.partition("x")
    return int(width), int(height)


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m paretone_app.pictures", description="Pictures of the real window.")
    parser.add_argument("folder", help="where they are saved")
    parser.add_argument("--sizes", type=_size, nargs="+", metavar="WIDTHxHEIGHT", help="sizes of the window")
    parser.add_argument("--scale", type=float, default=1.0, metavar="FACTOR", help="scale of the desktop, such as 1.5")
    parser.add_argument("--steps", type=int, default=0, metavar="N", help="solver steps (default: the model's)")
    parser.add_argument(
        "--guides", nargs="*", metavar="NAME", help="make the pictures of the guides instead: all, or those called so"
    )
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
