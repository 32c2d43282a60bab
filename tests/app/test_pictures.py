"""Pictures of the real window: every workspace in every size and in both schemes."""

from __future__ import annotations

import re

from paretone.paths import resource
from paretone_app.pictures import _parse, arranged
from paretone_app.shell.theme import Scheme
from paretone_app.shell.window import MainWindow
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
    assert _parse(["here", "--sizes", "1024x768", "1440x900", "--scale", "1.5"]).sizes == [(1024, 768), (1440, 900)]
