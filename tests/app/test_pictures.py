"""Pictures of the real window: every workspace in every size and scheme, and those of the guides."""

import asyncio
import re
from collections.abc import Coroutine
from pathlib import Path

import pytest
from PySide6.QtGui import QImage
from pytestqt.qtbot import QtBot

from paretone.errors import PlainError
from paretone.paths import resource
from paretone_app.shell.theme import Scheme
from paretone_app.shell.window import MainWindow
from tests.tools import pictures
from tests.tools.pictures import PICTURES, arranged, parse, require_content, take_for_guides
from tests.workload import workload


def test_every_workspace_is_brought_into_view_once_for_each_size_and_scheme(borrowed_window: MainWindow) -> None:
    window, before = borrowed_window, borrowed_window.size()
    names, schemes = [], workload([Scheme.DARK, Scheme.LIGHT], [Scheme.LIGHT])
    for name in arranged(window, [(1100, 720)], schemes):
        names.append(name)
        assert window.size().toTuple() == (1100, 720) and not window.grab().isNull()
        assert name.startswith(window.workspaces.current.name) and name.endswith(window.theme.scheme.value)
    assert len(names) == len(set(names)) == 5 * len(schemes)
    window.theme.apply(Scheme.SYSTEM)
    window.resize(before)


def test_the_pictures_of_the_guide_are_there_and_small() -> None:
    guide = resource("docs", "window.md")
    shown = re.findall(r"\]\((window/[^)]+)\)", guide.read_text(encoding="utf-8"))
    assert len(shown) == len(set(shown)) == 30
    assert {guide.parent / one for one in shown} == set((guide.parent / "window").iterdir())
    assert sum((guide.parent / one).stat().st_size for one in shown) < 3_000_000


def test_sizes_are_read_as_people_write_them() -> None:
    assert parse(["here", "--sizes", "1024x768", "1440x900", "--scale", "1.5"]).sizes == [(1024, 768), (1440, 900)]
    assert parse(["here"]).guides is None and parse(["here", "--guides"]).guides == []


GUIDES = resource("docs")
ROOT = GUIDES.parents[1]
_PICTURE = re.compile(r"!\[([^\]]*)\]\(([^)]+)\)")


def done(work: Coroutine[object, object, None], qtbot: QtBot) -> None:
    """Do ``work`` to its end, in turns with Qt. Raises what it raises."""
    loop = asyncio.new_event_loop()
    try:
        task = loop.create_task(work)

        def turned() -> bool:
            loop.call_soon(loop.stop)
            loop.run_forever()
            return task.done()

        qtbot.waitUntil(turned)
        task.result()
    finally:
        loop.close()


def colours(path: Path) -> int:
    """The number of different colours in three lines of a picture."""
    image = QImage(str(path))
    return len({image.pixel(x, image.height() * y // 4) for y in (1, 2, 3) for x in range(image.width())})


def test_the_guides_show_what_the_command_makes() -> None:
    shown = {
        (guide.parent / link).resolve()
        for guide in (ROOT / "README.md", *GUIDES.glob("*.md"))
        for _, link in _PICTURE.findall(guide.read_text(encoding="utf-8"))
    }
    made = {GUIDES / f"{one.name}.webp" for one in PICTURES}
    assert len(made) == len(PICTURES)
    own = {one for one in shown if one.parent == GUIDES}
    assert {one for one in own if one.suffix != ".svg"} == made
    reports = {f"curves-{one}" for one in ("f5-mini", "megatts3-mini", "lm-mini", "omni-mini")}
    drawn = {GUIDES / f"{one}.svg" for one in reports | {"endurance", "grids-f5-mini", "study-scale"}}
    assert own - made == drawn == set(GUIDES.glob("*.svg")), "reports of studies, the endurance run and a bench"
    assert {one for one in GUIDES.iterdir() if one.suffix in (".webp", ".png")} == made, "nothing older is left"
    assert sum(one.stat().st_size for one in made) < 1_500_000
    assert all(colours(one) > 3 for one in made), "none is empty"


def test_pictures_are_taken_of_panels_that_were_filled_and_of_no_others(
    shared_window: MainWindow, qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last to see that window."""
    window = shared_window
    monkeypatch.setattr(pictures, "SETTLE_SECONDS", 0.05)
    with pytest.raises(PlainError, match="nothing to take a picture of yet: No tokens yet"):
        require_content(window.panels["decoding"])
    folder = tmp_path / "pictures"
    done(take_for_guides(window, folder, ["trade-off", "views-light"]), qtbot)
    made = folder / "trade-off.webp", folder / "views-light.webp"
    assert set(folder.iterdir()) == set(made)
    assert QImage(str(made[0])).size().toTuple() == (1100, 600)
    assert all(colours(one) > 3 for one in made)
    window.theme.apply(Scheme.SYSTEM)
