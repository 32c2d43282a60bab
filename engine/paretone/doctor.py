"""State of this installation: versions, devices, sound, fonts, folders, space, plug-ins, packages, with remedies for
problems. Imports neither torch nor Qt."""

from __future__ import annotations

import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import paretone
from paretone import database, extras
from paretone.audio.sound_system import probe
from paretone.computing import computing, output, version_of
from paretone.measure.machine import describe, usable_cores
from paretone.models import catalogue
from paretone.own_process import packaged
from paretone.paths import data_folder, resource
from paretone.techniques.registry import problems, registry, technique

GOOD, NOTE, PROBLEM = "good", "note", "problem"
"""Nothing to do; an optional part is missing; something does not work."""
_LEAST_BYTES, _FEW_BYTES = 200 * 2**20, 3 * 2**30
"""Free space required for storing takes for long, and for official checkpoints."""
_BREAKING = (6, 12)
"""PySide6 version from which Python 3.11 aborts (PYSIDE-3474); 6.11 breaks docks, so the advice is an earlier one."""


@dataclass(frozen=True)
class Check:
    name: str
    state: str
    """:data:`GOOD`, :data:`NOTE` or :data:`PROBLEM`."""
    found: str
    advice: str = ""
    """Remedy as a sentence; ``""`` if nothing is needed."""


def examine(devices: Sequence[str], folder: Path | None = None) -> tuple[Check, ...]:
    """Run all checks in about a second. ``devices``: those usable by PyTorch, preferred first, empty while it starts;
    ``folder``: the user's data, if not at the default place."""
    places = _folders(folder or data_folder())
    parts = _versions(), _torch(devices), _window(), _sound(), _fonts(), places, _models(), _plug_ins(), _packages()
    return tuple(one for part in parts for one in part)


def shareable(checks: Sequence[Check], folder: Path | None = None) -> tuple[Check, ...]:
    """``checks`` without this user's folders, including the data folder, for a report to others."""
    return tuple(Check(one.name, one.state, private(one.found, folder), private(one.advice, folder)) for one in checks)


def private(text: str, data: Path | None = None) -> str:
    """``text`` without this user's folders: the home folder is ``~``, the ``data`` folder ``DATA``."""
    for folder, name in ((data or data_folder(), "DATA"), (Path(tempfile.gettempdir()), "TEMP"), (Path.home(), "~")):
        for path in {str(folder), str(folder.resolve())}:
            if len(path) > 1:
                text = text.replace(path, name)
    return text


def as_text(checks: Sequence[Check]) -> str:
    """Results for people, one line each, with the remedy below."""
    marks = {GOOD: "✓", NOTE: "–", PROBLEM: "✗"}
    lines = []
    for one in checks:
        lines.append(f"{marks[one.state]} {one.name}: {one.found}")
        if one.advice:
            lines.append(f"    {one.advice}")
    problems = sum(one.state == PROBLEM for one in checks)
    said = {0: "No problem was found.", 1: "One problem was found (✗)."}
    return "\n".join((*lines, "", said.get(problems, f"{problems} problems were found (✗).")))


# --- Versions ---------------------------------------------------------------------------------------------------------
def _versions() -> Iterator[Check]:
    kind = "from a clone" if (resource().parent / "packaging" / "dev.py").exists() else "installed as a package"
    if packaged():
        kind = "the packaged program, to which nothing can be added"
    yield Check("Paretone", GOOD, f"{paretone.__version__}, {kind}")
    python = platform.python_version()
    if (3, 11) <= sys.version_info[:2] <= (3, 13):
        yield Check("Python", GOOD, f"{python}, {platform.system()} {platform.machine()}")
    else:
        yield Check("Python", PROBLEM, python, "Paretone needs Python 3.11, 3.12 or 3.13.")
    yield Check("Machine", GOOD, f"{describe().line.split('; Python')[0]}; {usable_cores()} cores usable")


def _torch(devices: Sequence[str]) -> Iterator[Check]:
    version = version_of("torch")
    if not version:
        advice = "Install it: pip install torch, or run packaging/dev.py again."
        yield Check("PyTorch", PROBLEM, "not installed", advice)
        return
    if not devices:
        yield Check("PyTorch", GOOD, f"{version}; it is still starting")
        return
    yield Check("PyTorch", GOOD, f"{version}; models run on {devices[0]}")
    found = computing(devices, devices[0])
    if found.idle:
        yield Check("Graphics card", PROBLEM, f"{found.idle} is not used: {found.lacking}", found.advice)
    elif found.lacking:
        yield Check("Graphics card", GOOD, f"none is used: {found.lacking}", found.advice)


# --- Window and sound -------------------------------------------------------------------------------------------------
def _window() -> Iterator[Check]:
    version = version_of("PySide6-Essentials") or version_of("PySide6")
    if not version:
        advice = "To have it, run pip install 'paretone[app]'; command line and Python work without."
        yield Check("Window", NOTE, "not installed: there is no PySide6", advice)
        return
    numbers = tuple(int(one) for one in version.split(".")[:2] if one.isdigit())
    if numbers >= _BREAKING and sys.version_info[:2] == (3, 11):
        advice = "Install an earlier one: pip install 'PySide6-Essentials<6.11'."
        yield Check("Window", PROBLEM, f"PySide6 {version} aborts on Python 3.11", advice)
    elif sys.platform.startswith("linux") and not {"DISPLAY", "WAYLAND_DISPLAY"} & os.environ.keys():
        advice = "Start paretone-gui in a desktop session; the command line works without one."
        yield Check("Window", NOTE, f"PySide6 {version}, but there is no display here", advice)
    else:
        yield Check("Window", GOOD, f"PySide6 {version}")


def _sound() -> Iterator[Check]:
    if not version_of("sounddevice"):
        return  # It belongs to the window.
    sound = probe()
    chosen = sound.device()
    if chosen is None:
        advice = "Takes can be made, saved and exported; to hear them, see to the sound system."
        yield Check("Sound", PROBLEM, sound.reason or "there is no audio output device", advice)
    else:
        yield Check("Sound", GOOD, f"{chosen.name} ({chosen.host}), {chosen.rate} Hz")


def _fonts() -> Iterator[Check]:
    if shutil.which("fc-list") is None:
        return  # Windows and macOS bring fonts for all scripts.
    if output("fc-list", ":lang=zh").strip():
        yield Check("Fonts", GOOD, "Latin and Chinese")
    else:
        advice = "For Chinese texts install a font, on Debian or Ubuntu: sudo apt install fonts-noto-cjk."
        yield Check("Fonts", NOTE, "there is none for Chinese", advice)


# --- Folders ----------------------------------------------------------------------------------------------------------
def _folders(folder: Path) -> Iterator[Check]:
    there = next((one for one in (folder, *folder.parents) if one.exists()), Path("/"))
    if not os.access(there, os.W_OK):
        advice = "Choose another one: menu File › Choose data folder…, or set PARETONE_DATA."
        yield Check("Data folder", PROBLEM, f"{folder} cannot be written", advice)
    elif not there.is_dir():
        yield Check("Data folder", PROBLEM, f"{there} is a file", "Move it, or set PARETONE_DATA to another folder.")
    else:
        yield _space("Data folder", folder, there)
        links = [one.name for one in (folder / "takes", folder / "takes" / database.AUDIO) if one.is_symlink()]
        if links:
            advice = "Put the folder itself in its place: nothing is written through links."
            yield Check("Take library", PROBLEM, f"its folder {links[0]} is a symbolic link", advice)
    temporary = Path(tempfile.gettempdir())
    yield _space("Folder for temporary files", temporary, temporary)


def _space(name: str, folder: Path, there: Path) -> Check:
    free = shutil.disk_usage(there).free
    found = f"{folder}, {free / 2**30:.1f} GiB free"
    if free < _LEAST_BYTES:
        return Check(name, PROBLEM, found, "Make room: takes and studies cannot be kept much longer.")
    if free < _FEW_BYTES:
        return Check(name, NOTE, found, "That is too little for official checkpoints.")
    return Check(name, GOOD, found)


# --- Models and packages ----------------------------------------------------------------------------------------------
def _models() -> Iterator[Check]:
    bundled = [one for one in catalogue.models() if one.bundled]
    if lacking := [one.title for one in bundled if not one.available]:
        advice = "Install Paretone again: its own models are part of it."
        yield Check("Bundled models", PROBLEM, f"{', '.join(lacking)} cannot be loaded", advice)
    else:
        yield Check("Bundled models", GOOD, ", ".join(one.title for one in bundled))
    others = [one.title for one in catalogue.models() if not one.bundled and one.available]
    yield Check("Official models", GOOD, ", ".join(others) or "none yet: Setup downloads them, or takes your folder")


def _plug_ins() -> Iterator[Check]:
    titles = [(called, technique(name).title) for name, called in registry().plug_ins.items()]
    titles += [(called, catalogue.entry(name).title) for name, called in catalogue.catalogue().plug_ins.items()]
    for called, title in titles:
        yield Check("Plug-in", GOOD, f"{called.removeprefix('the plug-in ')}: {title}")
    for sentence in problems():
        yield Check("Plug-in", PROBLEM, sentence, "Mend the plug-in, or uninstall its package.")


def _packages() -> Iterator[Check]:
    for one in extras.EXTRAS:
        if lacking := one.missing:
            advice = f"If you want that: Help › Optional packages…, or pip install 'paretone[{one.name}]'."
            if packaged():
                how = extras.how_to_add(one.name)
                advice = f"{how[0].upper()}{how[1:]}."
            yield Check(one.title, NOTE, f"needs {', '.join(lacking)}", advice)
        else:
            yield Check(one.title, GOOD, "installed")
