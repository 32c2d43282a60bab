"""Judges: what says how good a recording is. Torch-free; a judge imports what it needs when it is loaded.

A judge is declared as a :class:`JudgeKind` and loaded once a worker. Adding one means adding its module and naming it
here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Protocol

import numpy as np

from engine.by_name import by_name
from engine.errors import PlainError
from engine.models.base import Voice
from engine.paths import data_folder


@dataclass(frozen=True)
class Verdict:
    """One judge's scores of one recording."""

    judge: str
    figures: Mapping[str, float] = field(default_factory=dict)
    """By name, for example ``edits`` and ``words``."""
    heard: str = ""
    """The transcript, for judges of words."""


class Judge(Protocol):
    """A loaded judge."""

    def hear(self, text: str, voice: Voice, samples: np.ndarray, rate: int) -> Verdict:
        """Judge mono ``samples`` (n,) at ``rate`` Hz, in which ``voice`` says ``text``. Raises :class:`PlainError`."""


@dataclass(frozen=True)
class JudgeKind:
    """A judge as it is offered."""

    name: str
    title: str
    metrics: tuple[str, ...]
    """The metrics that follow from its figures; see :mod:`engine.measure.metrics`."""
    packages: tuple[str, ...]
    extra: str
    """The extra that installs these packages."""
    files: tuple[str, ...]
    """Files required in its folder; none for a judge that needs no files."""
    source: str
    """Source and licence of its files."""
    module: str
    """Module of its ``load``, which makes a :class:`Judge` from the sentences that will be judged, its folder and the
    device."""

    @property
    def folder(self) -> Path:
        """Folder of its files."""
        return data_folder() / "judges" / self.name

    def problem(self) -> str:
        """Why it cannot be used here, as a sentence, or ``""``."""
        missing = [name for name in self.packages if find_spec(name) is None]
        if missing:
            return (
                f"{self.title} needs {', '.join(missing)}, which {'is' if len(missing) == 1 else 'are'} not installed; "
                f"run: pip install 'paretone[{self.extra}]'"
            )
        absent = [name for name in self.files if not (self.folder / name).exists()]
        if absent:
            return f"{self.title} lacks {', '.join(absent)} in {self.folder}. {self.source}"
        return ""

    def ready(self, texts: Sequence[str], device: str = "cpu") -> Judge:
        """The loaded judge. Raises :class:`PlainError` if it cannot be used."""
        problem = self.problem()
        if problem:
            raise PlainError(problem)
        return import_module(self.module).load(texts, self.folder, device)


JUDGES: tuple[JudgeKind, ...] = (
    JudgeKind(
        "words",
        "Word errors (pocketsphinx)",
        ("word_error_rate",),
        ("jiwer", "pocketsphinx"),
        "evaluate",
        (),
        "",
        "engine.measure.evaluation.words",
    ),
    JudgeKind(
        "whisper",
        "Word errors (Whisper-large-v3)",
        ("whisper_word_error_rate",),
        ("jiwer", "transformers"),
        "publish",
        ("config.json", "model.safetensors", "preprocessor_config.json", "tokenizer.json"),
        "Get the files of openai/whisper-large-v3 (MIT) from the Hugging Face Hub.",
        "engine.measure.evaluation.whisper",
    ),
    JudgeKind(
        "similarity",
        "Speaker similarity (WavLM-large, SIM-o)",
        ("speaker_similarity",),
        ("transformers",),
        "publish",
        ("wavlm_large_finetune.pth",),
        "Get wavlm_large_finetune.pth of the UniSpeech repository's speaker verification (MIT), which Seed-TTS's "
        "evaluation names, too.",
        "engine.measure.evaluation.similarity",
    ),
    JudgeKind(
        "utmos",
        "Naturalness (UTMOS22 strong)",
        ("utmos",),
        ("transformers",),
        "publish",
        ("utmos22_strong_step7459_v1.pt",),
        "Get the strong learner of UTMOS22 as SpeechMOS releases it (tarepan/SpeechMOS, MIT).",
        "engine.measure.evaluation.utmos",
    ),
)


def judge_named(name: str) -> JudgeKind:
    """The judge called ``name``. Raises :class:`SettingError` that lists the known ones."""
    return by_name(name, {one.name: one for one in JUDGES}, "judge", "judges")
