"""Hooks of techniques in studies: see :attr:`engine.techniques.base.Technique.study`. Torch-free.

A technique may name a module with any of these functions, which is imported once a study asks for one of them:

- ``settings(fields, model, options)`` reads fields of its own from a study's file (:class:`engine.fields.Fields`) and
  yields the settings that they add, each with its name;
- ``preparer()`` makes what prepares the technique's artefact on a worker: called with the loaded model, utterances, a
  setting and an observer, it returns the artefact, and may keep what it learns for the next setting;
- ``files(store)`` gives what a report writes as well, texts by file name;
- ``finished(study, store)`` is called at the end of a study and says what it has found of the model: a :class:`Finding`
  or ``None``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from engine.techniques import Technique, technique, techniques


@dataclass(frozen=True)
class Finding:
    """Findings of one technique in a finished study."""

    sentence: str
    """To be said to the user."""
    fields: tuple[tuple[str, str], ...] = ()
    """Fields for the command line's JSON, by name."""
    result: Any = None
    """The result as the technique's own job would give it; ``None`` if nothing was found."""
    checkpoint: str = ""
    """SHA-256 of the checkpoint that it is about."""


def hooks(name: str) -> Iterator[tuple[Technique, Callable[..., Any]]]:
    """The techniques that have a function called ``name`` for studies, and these."""
    for one in techniques():
        found = getattr(import_module(one.study), name, None) if one.study else None
        if found is not None:
            yield one, found


def preparer(name: str) -> Callable[..., Any]:
    """Function that prepares artefacts for the technique called ``name``."""
    return import_module(technique(name).study).preparer()
