"""The project's declarations about itself are true."""

from __future__ import annotations

import configparser
import re
import subprocess
import sys
import tomllib
import zipfile
from importlib import metadata
from pathlib import Path

import pytest

from engine.models.catalogue import voices

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
_NAME = re.compile(r"[A-Za-z0-9._-]+")


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def pins() -> dict[str, set[str]]:
    """Versions by package, as the constraints have them."""
    found: dict[str, set[str]] = {}
    for line in (ROOT / "packaging" / "constraints.txt").read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            name, _, version = line.partition("==")
            found.setdefault(normal(name), set()).add(version.partition(";")[0].strip())
    return found


def test_everything_that_is_installed_here_is_pinned() -> None:
    """Follows what Paretone needs, and what that needs, through this environment."""
    seen: set[str] = set()
    waiting = [("paretone", ("dev",))] if _installed("paretone") else [(name, ()) for name in _declared()]
    while waiting:
        name, extras = waiting.pop()
        if normal(name) in seen:
            continue
        seen.add(normal(name))
        for requirement in metadata.requires(name) or ():
            text, _, marker = requirement.partition(";")
            wanted = re.search(r"extra\s*==\s*['\"]([^'\"]+)", marker)
            needed = _NAME.match(text).group()
            if (wanted is None or wanted.group(1) in extras) and _installed(needed):
                waiting.append((needed, ()))
    unpinned = seen - set(pins()) - {"paretone", "pip"}
    assert not unpinned


def test_pins_meet_the_declared_ranges() -> None:
    for name in _declared():
        assert normal(name) in pins(), f"{name} is not pinned"


def _declared() -> list[str]:
    extras = PROJECT["project"]["optional-dependencies"].values()
    lines = [*PROJECT["project"]["dependencies"], *(line for extra in extras for line in extra)]
    return [name for line in lines if (name := _NAME.match(line).group()) != "paretone"]


def _installed(name: str) -> bool:
    try:
        place = metadata.distribution(name).locate_file("")
    except metadata.PackageNotFoundError:
        return False
    # Once setuptools is imported (compiling does so), what it carries within itself can be found as well.
    return "_vendor" not in Path(place).parts


def test_the_measured_blockers_stay_out() -> None:
    assert pins()["pyside6-essentials"] == {"6.10.3"}
    assert pins()["torch"] == {"2.13.0"}


def test_the_scripts_exist() -> None:
    scripts = PROJECT["project"]["scripts"] | PROJECT["project"]["gui-scripts"]
    for target in scripts.values():
        module, _, function = target.partition(":")
        source = ROOT.joinpath(*module.split(".")).with_suffix(".py").read_text(encoding="utf-8")
        assert f"def {function}(" in source


def test_continuous_integration_runs_the_test_command() -> None:
    script = ROOT / ".ci" / "run"
    assert script.stat().st_mode & 0o111
    assert script.read_text(encoding="utf-8").rstrip().endswith("python3 packaging/dev.py test")


def test_the_desktop_file_starts_the_application() -> None:
    parsed = configparser.ConfigParser(interpolation=None)
    parsed.optionxform = str
    parsed.read(ROOT / "packaging" / "paretone.desktop", encoding="utf-8")
    entry = parsed["Desktop Entry"]
    program, argument = entry["Exec"].split()
    assert program in PROJECT["project"]["gui-scripts"] and argument == "%f"
    assert entry["Type"] == "Application"


@pytest.mark.slow
def test_a_wheel_brings_its_resources(tmp_path: Path) -> None:
    """Built from a copy, since building leaves folders behind; then used from the wheel alone."""
    source, target = tmp_path / "source", tmp_path / "target"
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--", "app", "engine", "resources", "pyproject.toml", "README.md", "LICENSE"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    ).stdout.decode()
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            (source / name).write_bytes((ROOT / name).read_bytes())
    # Packing the models' weights would take most of the time, and makes them hardly smaller.
    build = (
        "import sys; from setuptools import build_meta;"
        "build_meta.build_wheel(sys.argv[1], {'--build-option': '--compression=stored'})"
    )
    subprocess.run([sys.executable, "-c", build, str(tmp_path)], cwd=source, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        archive.extractall(target)
    shipped = {name for name in listed.split("\0") if name.startswith("resources/") and (source / name).is_file()}
    assert shipped - names == set()
    assert not [name for name in names if name.startswith(("tests/", "packaging/"))]
    code = "from engine.models import catalogue; print(catalogue.entry('f5-mini').available, len(catalogue.voices()))"
    done = subprocess.run(
        [sys.executable, "-P", "-c", f"import sys; sys.path.insert(0, {str(target)!r}); {code}"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["True", str(len(voices()))]
