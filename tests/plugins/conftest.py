"""Plug-ins of ours, installed into a folder that only these tests see."""

import importlib
import shutil
import sys
import tomllib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

from paretone.models import catalogue
from paretone.techniques import registry
from tests.app.conftest import make_window, posts  # noqa: F401
from tests.engine.conftest import console  # noqa: F401
from tests.plugins.writing import install

HERE = Path(__file__).parent
PACKAGES = ("adams_bashforth", "entropy_bound", "guidance_rescale", "min_p")


def forget() -> None:
    registry.registry.cache_clear()
    catalogue.catalogue.cache_clear()


def installed(found: Path, names: Iterable[str], group: str = "paretone.techniques") -> Path:
    """The folder ``found`` with packages of ours, as pip would install them; ``test_tutorial.py`` has pip do it."""
    for name in names:
        project = tomllib.loads((HERE / name / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        for module in (HERE / name).glob("paretone_*.py"):
            shutil.copy(module, found)
        install(found, f"paretone_{name}", project["name"], project["version"], project["entry-points"][group], group)
    return found


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return installed(tmp_path_factory.mktemp("site"), PACKAGES)


@pytest.fixture
def visible(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Path], None]]:
    """Lets this process find the plug-ins in a folder, until the test ends."""

    def show(folder: Path) -> None:
        monkeypatch.syspath_prepend(folder)
        importlib.invalidate_caches()
        forget()

    yield show
    monkeypatch.undo()
    forget()
    for name in [one for one in sys.modules if one.startswith(("paretone_", "plugin_"))]:
        if name.partition(".")[0] != "paretone_app":
            del sys.modules[name]


@pytest.fixture
def plugins(site: Path, visible: Callable[[Path], None]) -> Path:
    """All of them, found by this process; the folder that they are in."""
    visible(site)
    return site
