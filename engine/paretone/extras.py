"""Optional packages, the extras of ``pyproject.toml``: purpose, availability, installation. Torch-free."""

from __future__ import annotations

import importlib
import os
import queue
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import tomllib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.machinery import PathFinder
from importlib.metadata import PackageNotFoundError, distributions, requires
from importlib.util import find_spec
from pathlib import Path

from paretone.by_name import by_name
from paretone.errors import PlainError
from paretone.observer import Check
from paretone.own_process import packaged
from paretone.paths import CHECKOUT

OURS = "paretone"


def how_to_add(name: str) -> str:
    """How to install the extra ``name``, to follow a semicolon."""
    if packaged():
        return f"the packaged program cannot add it: install Paretone with pip or uv, with its extra {name!r}"
    return f"run: pip install '{OURS}[{name}]'"


@contextmanager
def needing(kind: type[PlainError], what: str, install: str = "") -> Iterator[None]:
    """Raise ``kind`` for a missing package that is imported within. ``what`` names it and its use, and ``install`` how
    to get it, unless ``what`` is the whole sentence."""
    try:
        yield
    except ImportError:
        raise kind(f"{what}, which is not installed; {install}" if install else what) from None


NO_TRAINING = f"Training needs the package accelerate, which is not installed; {how_to_add('train')}"
NO_SEARCH = f"A search needs optuna, which is not installed; {how_to_add('search')}"
NO_CLUSTER = f"Running on a cluster needs ray, which is not installed; {how_to_add('cluster')}"
NO_GGUF = f"Files for llama.cpp need the package gguf, which is not installed; {how_to_add('gguf')}"
DISTILLMOS, RESEMBLYZER = "distillmos==0.9.1", "resemblyzer==0.1.4"
SPEECHMOS = "speechmos==0.0.1.1"
"""Packages with the weights of the judges of naturalness, of voices and of artefacts."""
PROJECT = CHECKOUT / "pyproject.toml"
_NAMED = re.compile(rf"pip install\b.*?\b{OURS}\[([a-z0-9]+)")
_MARKED = re.compile(r"""(?P<what>[^;]+);.*extra\s*==\s*["'](?P<extra>[^"']+)["']""")


@dataclass(frozen=True)
class Extra:
    """Packages for one purpose."""

    name: str
    title: str
    """Purpose, as a heading."""
    modules: tuple[str, ...]
    """Modules that it makes importable."""
    alone: tuple[str, ...] = ()
    """Requirements installed without dependencies: only their weights are read."""

    @property
    def missing(self) -> tuple[str, ...]:
        found = (*self.modules, *(one.partition("==")[0] for one in self.alone))
        return tuple(one for one in found if find_spec(one) is None)


SEARCH = "search"
EXTRAS = (
    Extra(SEARCH, "Searches for the best settings", ("optuna",)),
    Extra("train", "Training drafts, students and weights", ("accelerate",)),
    Extra(
        "judge",
        "Judges: word errors, naturalness, voice similarity",
        ("jiwer", "pocketsphinx"),
        (DISTILLMOS, RESEMBLYZER),
    ),
    Extra("download", "Downloads of official checkpoints", ("huggingface_hub",)),
    Extra("chinese", "Chinese text for F5-TTS", ("pypinyin", "rjieba")),
    Extra("qwen3tts", "Qwen3-TTS: its texts", ("tokenizers",)),
    Extra("cosyvoice", "CosyVoice: its texts and its voices", ("onnxruntime", "tokenizers", "wetext")),
    Extra("llasa", "LLaSA: its texts and its voices", ("transformers",)),
    Extra("megatts3", "MegaTTS: its texts", ("transformers",)),
    Extra("omnivoice", "Voices from recordings for OmniVoice", ("transformers",)),
    Extra(
        "publish",
        "Judges of papers: Whisper, SIM-o, UTMOS, DNSMOS",
        ("jiwer", "transformers", "onnxruntime", "zhconv"),
        (SPEECHMOS,),
    ),
    Extra("mandarin", "Paraformer, a judge of Chinese", ("jiwer", "funasr", "zhconv")),
    Extra("cluster", "Studies on a Ray cluster", ("ray",)),
    Extra("gguf", "Exports for llama.cpp", ("gguf",)),
    Extra("serve", "Engines elsewhere, a speech server, and measuring one under load", ("aiohttp", "msgspec")),
)


def extra(name: str) -> Extra:
    """Extra by ``name``. Raises :class:`paretone.errors.SettingError` with a suggestion."""
    return by_name(name, {one.name: one for one in EXTRAS}, "extra", "extras")


def named_in(sentence: str) -> Extra | None:
    """Extra that ``sentence`` says to install, if it is one of these and missing."""
    wanted = _NAMED.search(sentence)
    for one in EXTRAS:
        named = wanted is not None and one.name == wanted.group(1)
        if named or any(f"pip install --no-deps {each}" in sentence for each in one.alone):
            return one if one.missing else None
    return None


def require_serving(what: str = "Speech over HTTP") -> None:
    """Raise :class:`PlainError` where nothing can be served or used over a network."""
    if missing := extra("serve").missing:
        raise PlainError(f"{what} needs {' and '.join(missing)}, not installed here; {how_to_add('serve')}.")


def why_no_training() -> str:
    """Reason why training is impossible here, as a sentence, or ``""``."""
    return NO_TRAINING if extra("train").missing else ""


def why_no_search() -> str:
    return NO_SEARCH if extra(SEARCH).missing else ""


def why_no_cluster() -> str:
    return NO_CLUSTER if extra("cluster").missing else ""


def why_no_gguf() -> str:
    return NO_GGUF if extra("gguf").missing else ""


def requirements(name: str) -> tuple[str, ...]:
    """Requirements of an extra, from the checkout's project file or the installed metadata."""
    if PROJECT.is_file():
        declared = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]["optional-dependencies"]
        return tuple(declared[name])
    try:
        stated = requires(OURS) or []
    except PackageNotFoundError:
        stated = []
    marked = (_MARKED.fullmatch(one) for one in stated)
    return tuple(one["what"].strip() for one in marked if one is not None and one["extra"] == name)


# --- Installing -------------------------------------------------------------------------------------------------------
# Installed packages stay unchanged, since they may be in use: all are held at their versions. A checkout's own pins
# apply to new ones.
_PINS = CHECKOUT / "packaging" / "constraints.txt"
_POLL_SECONDS = 0.1
_PATIENCE_SECONDS = 5.0
"""Time for a stopped installer to clean up."""
PHASES = ("Looking for packages", "Downloading", "Installing")
_BEGINNINGS = {"Collecting": 0, "Downloading": 1, "Using cached": 1, "Prepared": 1, "Installing": 2, "Installed": 2}
"""First words of the installers' lines, with their phases."""
_NO_REASON = "the installer gave no reason"


def why_no_installing() -> str:
    """Reason why nothing can be installed into the running environment, as a sentence, or ``""``."""
    if packaged():
        return "The packaged program cannot add packages; install Paretone with pip or uv to add them."
    if sys.prefix == sys.base_prefix:
        return "Paretone runs outside a virtual environment, which it does not change; install the package yourself."
    if not installer():
        return "This environment has neither pip nor uv; install one of them to add packages."
    return ""


def install(extra: Extra, tell: Callable[[int, int, str], None], check: Check) -> bool:
    """Install ``extra``; returns whether it is usable without a restart of the application. ``tell`` receives the
    phase, the number of phases and a line; ``check`` raises to cancel. Raises :class:`PlainError` with the reason of a
    failure."""
    if reason := why_no_installing():
        raise PlainError(reason)
    wanted = requirements(extra.name)
    with constraints_file() as constraints:
        tell(0, len(PHASES), PHASES[0])
        for asked, alone in ((wanted, False), (extra.alone, True)):
            if asked:
                options = ["--no-deps"] if alone else ["--constraint", str(constraints)]
                _carry_out([*installer(), *options, *asked], extra, tell, check)
    importlib.invalidate_caches()
    tell(len(PHASES), len(PHASES), f"Installed: {extra.title}")
    return not extra.missing


def pip() -> list[str]:
    """Command of this environment's pip, which may be missing."""
    return [sys.executable, "-m", "pip", "--disable-pip-version-check"]


def installer() -> list[str]:
    """Command for installing into this environment; empty without one."""
    # Not by find_spec: setuptools takes that for pip at work, and then neither it nor compilers can be imported.
    if PathFinder.find_spec("pip") is not None:
        return [*pip(), "install", "--no-input", "--progress-bar", "off"]
    uv = shutil.which("uv")
    return [uv, "pip", "install", "--no-progress", "--python", sys.executable] if uv else []


@contextmanager
def constraints_file() -> Iterator[Path]:
    """Constraints file that holds installed packages at their versions, and new ones at a checkout's pins."""
    there = {_normal(one.name): one.version for one in distributions() if one.name and _normal(one.name) != OURS}
    lines = [f"{name}=={version}" for name, version in sorted(there.items())]
    if _PINS.is_file():
        pinned = _PINS.read_text(encoding="utf-8").splitlines()
        lines += [one for one in pinned if "==" in one and _normal(one.partition("==")[0]) not in {*there, OURS}]
    with tempfile.TemporaryDirectory(prefix="paretone-") as folder:
        path = Path(folder) / "constraints.txt"
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        yield path


def _normal(name: str) -> str:
    """Normalised name of a distribution, as in the index."""
    return name.strip().lower().replace("_", "-").replace(".", "-")


def _carry_out(command: Sequence[str], extra: Extra, tell: Callable[[int, int, str], None], check: Check) -> None:
    """Run the installer to its end, or stop it when ``check`` raises."""
    process = subprocess.Popen(
        list(command),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
        start_new_session=os.name != "nt",
    )
    assert process.stdout is not None
    lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
    reader = threading.Thread(target=_read, args=(process.stdout, lines), name="installer", daemon=True)
    reader.start()
    said: list[str] = []
    try:
        while (line := _next(lines, check)) is not None:
            said.append(line)
            phase = next((phase for start, phase in _BEGINNINGS.items() if line.strip().startswith(start)), None)
            if phase is not None:
                tell(phase, len(PHASES), line.strip())
        code = process.wait()
    finally:
        _stop(process)
        reader.join()
        process.stdout.close()
    if code:
        names = ", ".join(extra.missing) or extra.title
        raise PlainError(f"{names} could not be installed: {_reason(said)}. Check the network, then try again.")


def _read(stream: Iterator[str], lines: queue.SimpleQueue[str | None]) -> None:
    for line in stream:
        lines.put(line.rstrip())
    lines.put(None)


def _next(lines: queue.SimpleQueue[str | None], check: Check) -> str | None:
    while True:
        check()
        try:
            return lines.get(timeout=_POLL_SECONDS)
        except queue.Empty:
            continue


def _stop(process: subprocess.Popen[str]) -> None:
    """End a running installer with all its children; it may first restore what it was replacing."""
    if process.poll() is not None:
        return
    if os.name == "nt":
        process.terminate()
    else:
        os.killpg(process.pid, signal.SIGINT)
    try:
        process.wait(_PATIENCE_SECONDS)
    except subprocess.TimeoutExpired:
        if os.name == "nt":
            process.kill()
        else:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _reason(said: Sequence[str]) -> str:
    """Reason of the installer's failure, from its output."""
    errors = [one.partition("ERROR:")[2].strip() for one in said if "ERROR:" in one]
    words = (errors or [one.strip() for one in said if one.strip()] or [_NO_REASON])[-1]
    return words.rstrip(".")[:200]
