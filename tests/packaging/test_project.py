"""The project's declarations about itself are true."""

from __future__ import annotations

import configparser
import re
import tomllib
from importlib import metadata
from pathlib import Path

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
