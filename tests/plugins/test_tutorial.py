"""The tutorial ``resources/docs/your-own-technique.md``, done as printed: package, commands, study, trade-off view."""

import json
import os
import re
import shlex
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from PySide6.QtCore import QSettings, Qt
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from paretone.session.engine_thread import EngineThread
from paretone.studies.study import results_folder
from paretone_app.shell.theme import Theme
from paretone_app.shell.window import MainWindow
from tests.app.conftest import close, ready
from tests.app.features.studies.studying import opened
from tests.peers.official import python_of
from tests.prompts import shortened
from tests.workload import only_in_full, workload

TUTORIAL = Path(__file__).resolve().parents[2] / "resources" / "docs" / "your-own-technique.md"
SHORTER = (
    ('sentences = "harvard"\ncount = 6\n', 'sentences = ["Rice."]\n'),
    ('spacing = "uniform"\n', 'spacing = "uniform"\nsteps = 3\n'),
    ("[4, 6, 8, 12]", "[2]"),
)
"""What the study has, and what is enough for points."""
COMMANDS = """
import contextlib, io, json, pathlib, sys
from paretone import cli
from paretone.models import voices as shipped

commands, voices = json.loads(sys.argv[1]), sys.argv[2:]
if voices:
    whole, place = shipped.resource, shipped.PLACE
    shipped.resource = lambda *parts: pathlib.Path(*voices) if parts == place else whole(*parts)
for words in commands:
    with contextlib.redirect_stdout(io.StringIO()) as said:
        code = cli.main(words)
    print(json.dumps(said.getvalue()))
    if code:
        sys.exit(f"{words} ended with {code}")
"""
"""Does what several calls of ``paretone`` would, each of which would import everything anew, and prints what each
printed. The shipped voices are those in a folder, if one is given."""
_PATIENCE = workload(900, 300)
"""Seconds for a command; the printed study in full takes minutes."""
_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.DOTALL | re.MULTILINE)
pytestmark = pytest.mark.timeout(2 * _PATIENCE)


def blocks(language: str, tutorial: Path = TUTORIAL) -> list[str]:
    return [text for name, text in _BLOCK.findall(tutorial.read_text(encoding="utf-8")) if name == language]


@dataclass
class Walk:
    """The tutorial's files, and the output of each command."""

    package: Path
    study: Path
    packages: Path
    """The folder that pip installed into."""
    output: dict[str, str] = field(default_factory=dict)
    """By the first two words of a command."""


def environment(folder: Path) -> tuple[Path, Path]:
    """An environment with Paretone in it, as after its set-up; its Python, and the folder of its packages."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True, timeout=120)
    base = {"base": str(folder), "platbase": str(folder), "installed_base": str(folder)}
    packages = Path(sysconfig.get_path("purelib", scheme="venv", vars=base))
    shared = sysconfig.get_path("purelib")
    (packages / "paretone.pth").write_text(f"import site; site.addsitedir({shared!r})\n", encoding="utf-8")
    return python_of(folder), packages


@pytest.fixture(scope="module")
def walk(tmp_path_factory: pytest.TempPathFactory) -> Walk:
    """Sections 1 to 6 up to the window, in an empty folder."""
    folder = tmp_path_factory.mktemp("tutorial")
    python, packages = environment(folder / "environment")
    project, study = blocks("toml")
    found = Walk(folder / "package", folder / "adams_bashforth.toml", packages)
    found.package.mkdir()
    (found.package / "pyproject.toml").write_text(project, encoding="utf-8")
    (found.package / "paretone_adams_bashforth.py").write_text("\n\n".join(blocks("python")), encoding="utf-8")
    for printed, short in SHORTER:
        assert printed in study
        study = study.replace(printed, workload(printed, short))
    found.study.write_text(study, encoding="utf-8")
    variables = {**os.environ, "PARETONE_DATA": str(folder / "data"), "OMP_NUM_THREADS": "1"}

    def done(command: list[str]) -> str:
        """What the command prints."""
        one = subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True, timeout=_PATIENCE)
        assert one.returncode == 0, f"{command}\n{one.stdout}\n{one.stderr}"
        return one.stdout

    commands: list[list[str]] = []
    for line in "".join(blocks("")).splitlines():
        program, *words = shlex.split(line)
        if program == "source":
            continue  # Activating is the shell's; the environment's own Python is called instead.
        assert program in ("pip", "paretone"), f"the test cannot run {line!r}"
        words = [str(found.package) if word == "path/to/your/folder" else word for word in words]
        if program == "pip":
            assert not commands, "Paretone finds what was installed before"
            words += ["--no-index", "--no-build-isolation", "--disable-pip-version-check"]
            found.output[f"pip {words[0]}"] = done([str(python), "-m", "pip", *words])
            continue
        if words[0] == "compare":
            assert words[1] == "baseline" and words[2].startswith("steps=8,")
            words[1:3] = workload(words[1:3], ["steps=3", words[2].replace("=8,", "=2,")])
            words[words.index("--text") + 1] = workload(words[words.index("--text") + 1], "Rice.")
            words += ["--repeats", "1"]
        commands.append(words)
    (folder / "voices").mkdir()
    voices = workload([], [str(shortened(folder / "voices"))])
    said = done([str(python), "-c", COMMANDS, json.dumps(commands), *voices]).splitlines()
    found.output |= {f"paretone {words[0]}": json.loads(one) for words, one in zip(commands, said, strict=True)}
    return found


def test_the_commands_say_what_the_tutorial_promises(walk: Walk) -> None:
    listed = walk.output["paretone models"]
    assert "adams_bashforth:weight" in listed.rstrip().splitlines()[-1], "at the end of the list"
    assert "times as fast as A" in walk.output["paretone compare"]
    assert list(walk.output) == ["pip install", "paretone models", "paretone compare", "paretone study"]
    assert results_folder(walk.study).is_dir()


@only_in_full("repetitions")
def test_the_window_shows_its_points(
    walk: Walk, visible: Callable[[Path], None], theme: Theme, tmp_path: Path, qtbot: QtBot
) -> None:
    visible(walk.packages)
    visible(walk.package)
    settings = QSettings(str(tmp_path / "window.ini"), QSettings.Format.IniFormat)
    window = ready(MainWindow(theme, settings, tmp_path / "data", EngineThread), qtbot)
    assert window.panels["setup"].techniques.groups["adams_bashforth"].title()
    opened(window, walk.study, qtbot)
    window.workspaces.go_to("tradeoff")
    panel = window.panels["tradeoff"]
    qtbot.waitUntil(lambda: panel.pool is not None and panel.pool.own.sum() >= 3)
    assert "adams_bashforth" in panel.pool.techniques, "in the legend"
    chosen = next(one for one in panel.scene.points if "adams_bashforth" in one.techniques)
    panel.plot.go_to(panel.scene.index[chosen.key])
    QTest.mouseClick(panel.details.use_button, Qt.MouseButton.LeftButton)
    assert window.state.selection.setting.technique("adams_bashforth") is not None
    close(window, qtbot)
