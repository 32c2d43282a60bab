"""Optional packages of Paretone, as the extras of ``pyproject.toml``: what each is for, and whether it is there.
Torch-free."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, requires
from importlib.util import find_spec

from paretone.errors import PlainError
from paretone.own_process import packaged
from paretone.paths import CHECKOUT

OURS = "paretone"


def how_to_add(name: str) -> str:
    """What to do to have the extra ``name``, to follow a semicolon."""
    if packaged():
        return f"the packaged program cannot add it: install Paretone with pip or uv, with its extra {name!r}"
    return f"run: pip install '{OURS}[{name}]'"


NO_TRAINING = f"Training needs the package accelerate, which is not installed; {how_to_add('train')}"
NO_SEARCH = f"A search needs optuna, which is not installed; {how_to_add('search')}"
NO_CLUSTER = f"Running on a cluster needs ray, which is not installed; {how_to_add('cluster')}"
NO_GGUF = f"Files for llama.cpp need the package gguf, which is not installed; {how_to_add('gguf')}"
DISTILLMOS, RESEMBLYZER = "distillmos==0.9.1", "resemblyzer==0.1.4"
"""Packages that hold the weights of the judges of naturalness and of voices."""
_PROJECT = CHECKOUT / "pyproject.toml"
_NAMED = re.compile(rf"pip install\b.*?\b{OURS}\[([a-z0-9]+)")
_MARKED = re.compile(r"""(?P<what>[^;]+);.*extra\s*==\s*["'](?P<extra>[^"']+)["']""")


@dataclass(frozen=True)
class Extra:
    """Packages for one purpose."""

    name: str
    title: str
    """What it is for, as a heading."""
    modules: tuple[str, ...]
    """What can be imported once it is there."""
    alone: tuple[str, ...] = ()
    """Requirements that are installed without what they ask for: only their weights are read."""

    @property
    def missing(self) -> tuple[str, ...]:
        """The packages that are not there."""
        found = (*self.modules, *(one.partition("==")[0] for one in self.alone))
        return tuple(one for one in found if find_spec(one) is None)


EXTRAS = (
    Extra("search", "Searches for the best settings", ("optuna",)),
    Extra("train", "Training drafts, students and weights", ("accelerate",)),
    Extra(
        "judge",
        "Judges: word errors, naturalness, voice similarity",
        ("jiwer", "pocketsphinx"),
        (DISTILLMOS, RESEMBLYZER),
    ),
    Extra("download", "Downloads of official checkpoints", ("huggingface_hub",)),
    Extra("chinese", "Chinese text for F5-TTS", ("pypinyin", "rjieba")),
    Extra("cosyvoice", "CosyVoice 2", ("onnxruntime", "tokenizers", "wetext")),
    Extra("llasa", "LLaSA", ("transformers",)),
    Extra("megatts3", "MegaTTS 3", ("transformers",)),
    Extra("omnivoice", "OmniVoice", ("transformers",)),
    Extra("publish", "Judges of papers: Whisper, SIM-o, UTMOS", ("jiwer", "transformers")),
    Extra("cluster", "Studies on a Ray cluster", ("ray",)),
    Extra("gguf", "Exports for llama.cpp", ("gguf",)),
)


def extra(name: str) -> Extra:
    """The extra called ``name``. Raises :class:`PlainError` that lists the known ones."""
    found = next((one for one in EXTRAS if one.name == name), None)
    if found is None:
        raise PlainError(f"There is no extra {name!r}; there are {', '.join(one.name for one in EXTRAS)}.")
    return found


def named_in(sentence: str) -> Extra | None:
    """The extra that ``sentence`` says to install, if it is one of these and not there yet."""
    wanted = _NAMED.search(sentence)
    found = next(
        (
            one
            for one in EXTRAS
            if (wanted is not None and one.name == wanted.group(1))
            or any(f"pip install --no-deps {each}" in sentence for each in one.alone)
        ),
        None,
    )
    return found if found is not None and found.missing else None


def why_no_training() -> str:
    """Why nothing can be trained here, as a sentence, or ``""``."""
    return NO_TRAINING if extra("train").missing else ""


def why_no_search() -> str:
    """Why nothing can be searched for here, as a sentence, or ``""``."""
    return "" if find_spec("optuna") else NO_SEARCH


def why_no_cluster() -> str:
    """Why no cluster can be used from here, as a sentence, or ``""``."""
    return "" if find_spec("ray") else NO_CLUSTER


def why_no_gguf() -> str:
    """Why no files for llama.cpp can be written here, as a sentence, or ``""``."""
    return "" if find_spec("gguf") else NO_GGUF


def requirements(name: str) -> tuple[str, ...]:
    """What the extra asks for, from the project's own file or, where Paretone is installed, from its metadata."""
    if _PROJECT.is_file():
        declared = tomllib.loads(_PROJECT.read_text(encoding="utf-8"))["project"]["optional-dependencies"]
        return tuple(declared[name])
    try:
        stated = requires(OURS) or []
    except PackageNotFoundError:
        stated = []
    marked = (_MARKED.fullmatch(one) for one in stated)
    return tuple(one["what"].strip() for one in marked if one is not None and one["extra"] == name)
