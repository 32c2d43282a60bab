"""Kinds of studies that features of techniques add to the form. No widgets."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache

from paretone.models.base import ModelInfo
from paretone.setting.plan import imported
from paretone_app.features.registry import FEATURES


@dataclass(frozen=True)
class StudyKind:
    """A kind of study whose settings follow from the model; the user varies nothing."""

    name: str
    title: str
    tip: str
    about: str
    """What is compared and what it is for, in place of what is varied."""
    proposal: str
    """Title of such a study, with ``{model}``."""
    judges: tuple[str, ...]
    """Judges whose figures it needs."""
    fields: Callable[[ModelInfo], Mapping[str, object] | None]
    """Fields of the study's file for the loaded model, which the technique's study hooks read; ``None`` if it cannot be
    studied so."""
    missing: str
    """What to do if it cannot, as a sentence."""


@dataclass(frozen=True)
class OfferedKind:
    """A kind of study with what it takes for the model in Setup."""

    kind: StudyKind
    fields: Mapping[str, object] | None
    """Fields of the study's file; ``None`` if that model cannot be studied so."""


@cache
def study_kinds() -> tuple[StudyKind, ...]:
    """Those that features declare."""
    return tuple(imported(one.study) for one in FEATURES if one.study)


def offered_kinds(info: ModelInfo | None) -> tuple[OfferedKind, ...]:
    """All kinds for the loaded model."""
    return tuple(OfferedKind(one, one.fields(info) if info is not None else None) for one in study_kinds())
