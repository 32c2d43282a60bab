"""Everything that documents name exists, and what the project declares about itself is true."""

import configparser
import re
import shlex
import tomllib
from contextlib import suppress
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

import pytest

from paretone.commands.arguments import ArgumentsError
from tests.engine.test_guides import read

ROOT = Path(__file__).resolve().parents[2]
CHANGES = ROOT / "CHANGELOG.md"
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("resources/docs/**/*.md")])
ARCHITECTURE = ROOT / "resources" / "docs" / "architecture.md"
PRESENT = [one for one in DOCUMENTS if one != CHANGES]
"""Those that do not tell of what was, too."""
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_PLACE = re.compile(r"`((?:app|engine|packaging|resources|tests)/[^`\s]*)`")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
_BLOCK = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
_SAID = re.compile(r"`(paretone [^`…]+)`")
_MODULE = re.compile(r"\bpython3? -m ([\w.]+)")


def text(document: Path) -> str:
    return document.read_text(encoding="utf-8")


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda one: one.name)
def test_links_and_pictures_lead_somewhere(document: Path) -> None:
    for target in (one for one in _LINK.findall(text(document)) if "://" not in one):
        path, _, anchor = target.partition("#")
        linked = document.parent / path if path else document
        assert linked.exists(), target
        if anchor:
            titles = _HEADING.findall(text(linked))
            assert anchor in {re.sub(r"[^\w\- ]", "", one.lower()).replace(" ", "-") for one in titles}, target


@pytest.mark.parametrize("document", PRESENT, ids=lambda one: one.name)
def test_places_and_modules_exist(document: Path) -> None:
    for place in _PLACE.findall(text(document)):
        assert list(ROOT.glob(place.rstrip("/"))), place
    for module in _MODULE.findall(text(document)):
        assert find_spec(module) is not None, module


def test_the_architecture_has_a_line_for_every_folder() -> None:
    """Each package of ``app`` and ``engine`` by path, by name in one folder's tables; the README leads there."""
    rows, within = set(), ""
    for folder, row in re.findall(r"^In `([^`]+)`|^\| `([^`]+)`", text(ARCHITECTURE), re.MULTILINE):
        within = folder or within
        rows.add(f"{within}/{row}" if within else row)
    packages = [one.parent for top in ("app", "engine") for one in (ROOT / top).glob("*/**/__init__.py")]
    rooms = {one.relative_to(ROOT).as_posix() for one in packages if one.parent.parent != ROOT}
    assert rooms - rows == set()
    assert all((ROOT / one).exists() for one in rows)
    assert "resources/docs/architecture.md" in _LINK.findall(text(ROOT / "README.md"))


def test_every_picture_is_shown_somewhere() -> None:
    shown = {Path(one).name for document in DOCUMENTS for one in _LINK.findall(text(document))}
    pictures = [one for one in (ROOT / "resources" / "docs").rglob("*") if one.suffix in (".png", ".webp")]
    assert {one.name for one in pictures} <= shown
    assert pictures


@pytest.mark.parametrize("document", PRESENT, ids=lambda one: one.name)
def test_commands_in_sentences_are_understood(document: Path) -> None:
    """They may leave out what a command needs, but name no unknown option or choice; blocks have their own test."""
    for command in (" ".join(one.split()) for one in _SAID.findall(_BLOCK.sub("", text(document)))):
        # Of help, which is a command, too, the process would end here.
        with suppress(SystemExit):
            try:
                read(shlex.split(command)[1:])
            except ArgumentsError as error:
                if not re.search("(are|is) required|expected one argument", str(error)):
                    pytest.fail(f"{command}\n{error}")


# --- The project ------------------------------------------------------------------------------------------------------
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
_NAME = re.compile(r"[A-Za-z0-9._-]+")


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def pins() -> dict[str, set[str]]:
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
    assert not (seen - set(pins()) - {"paretone", "pip"})


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
