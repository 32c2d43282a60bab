"""Pictures of every workspace, from the real window: ``python -m app.pictures FOLDER``.

The steps of the main job are done first, so that the panels have something to show. ``--scale 1.5`` gives what a
screen at 150 % shows; sizes are in the desktop's own pixels, as the window has them.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from app.shell.theme import Scheme

if TYPE_CHECKING:
    from PySide6.QtWidgets import QApplication

    from app.shell.window import MainWindow

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
    :class:`engine.errors.PlainError` with the reason when a job fails."""
    from app.shell.headless_tour import make_takes, until
    from engine.errors import PlainError

    folder.mkdir(parents=True, exist_ok=True)
    window.show()
    await make_takes(window, steps, print)
    window.action["open_example"].trigger()
    await until(lambda: bool(window.state.open_studies.folders), window)
    for name in arranged(window, sizes):
        await asyncio.sleep(_SECONDS)
        path = folder / f"{name}.webp"
        if not window.grab().toImage().save(str(path), quality=_QUALITY):
            raise PlainError(f"{path} could not be written.")
        print(f"Wrote {path}")


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
    with asyncio.Runner(loop_factory=lambda: qasync.QEventLoop(application)) as runner:
        return runner.run(_run(application, options))


async def _run(application: QApplication, options: argparse.Namespace) -> int:
    from app.__main__ import make_window
    from engine.errors import PlainError

    with tempfile.TemporaryDirectory() as data:
        window = make_window(application, data)
        closed = asyncio.get_running_loop().create_future()
        window.closed.connect(lambda: closed.set_result(None))
        code = 0
        try:
            await take(window, Path(options.folder), options.sizes or SIZES, options.steps)
        except PlainError as error:
            print(f"No pictures: {error}", file=sys.stderr)
            code = 1
        window.close()
        await closed
    return code


def _size(text: str) -> tuple[int, int]:
    width, _, height = text.partition("x")
    return int(width), int(height)


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m app.pictures", description="Pictures of every workspace.")
    parser.add_argument("folder", help="where they are saved")
    parser.add_argument("--sizes", type=_size, nargs="+", metavar="WIDTHxHEIGHT", help="sizes of the window")
    parser.add_argument("--scale", type=float, default=1.0, metavar="FACTOR", help="scale of the desktop, such as 1.5")
    parser.add_argument("--steps", type=int, default=0, metavar="N", help="solver steps (default: the model's)")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
