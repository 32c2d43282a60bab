"""The models, voices and sentences that the application offers. Torch-free."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from engine.errors import SettingError
from engine.knobs import NO_VALUES, Knob, Values
from engine.models.base import Voice
from engine.models.f5.config import OPTIONS as F5_OPTIONS
from engine.paths import data_folder, resource

NON_COMMERCIAL = "CC-BY-NC-4.0"


@dataclass(frozen=True)
class CatalogueEntry:
    """One model as the user picks it."""

    id: str
    title: str
    summary: str
    family: str
    licence: str
    variant: str
    """Name of the architecture, or ``""`` where a sidecar in the folder describes it."""
    options: tuple[Knob, ...]
    default_options: Values = NO_VALUES
    """Values that differ from the knobs' own defaults."""
    bundled: bool = False
    vocoder: str = "vocos-mel-24khz"
    """Folder of the vocoder, beside the model's."""
    loader: str = "f5"
    """Who reads its files; see :mod:`engine.models.loading`."""

    @property
    def folder(self) -> Path:
        """Where its files lie, or will lie once downloaded."""
        return resource("models", self.id) if self.bundled else data_folder() / "models" / self.id

    @property
    def vocoder_folder(self) -> Path:
        """Where its vocoder's files lie."""
        return self.folder.parent / self.vocoder

    @property
    def available(self) -> bool:
        """Whether its files are there."""
        return any(self.folder.glob("*.safetensors")) or any(self.folder.glob("*.pt"))

    def options_with(self, **changes: object) -> Values:
        """All option values: the knobs' defaults, this model's own, then ``changes``."""
        values = {knob.name: knob.default for knob in self.options} | dict(self.default_options) | changes
        return Values(values)


def _official(variant: str, title: str, summary: str) -> CatalogueEntry:
    return CatalogueEntry(variant, title, summary, "flow", NON_COMMERCIAL, variant, F5_OPTIONS)


MODELS: tuple[CatalogueEntry, ...] = (
    CatalogueEntry(
        "f5-mini",
        "F5 mini",
        "8 million parameters, two voices, English; ships with Paretone and speaks on any processor.",
        "flow",
        "Apache-2.0",
        "",
        F5_OPTIONS,
        default_options=Values(steps=16),
        bundled=True,
        vocoder="vocos-mini",
    ),
    _official(
        "F5TTS_v1_Base",
        "F5-TTS v1 Base",
        "336 million parameters, English and Chinese, voice cloning.",
    ),
    _official(
        "F5TTS_Base",
        "F5-TTS Base (v0)",
        "The first release: 336 million parameters, English and Chinese.",
    ),
    _official(
        "E2TTS_Base",
        "E2-TTS Base",
        "333 million parameters, a plain U-Net transformer without text encoder.",
    ),
)


def entry(model: str) -> CatalogueEntry:
    """The entry called ``model``. Raises :class:`SettingError` that lists the known ones."""
    for one in MODELS:
        if one.id == model:
            return one
    raise SettingError(f"There is no model named {model!r}; known models: {', '.join(one.id for one in MODELS)}.")


OWN_VOICE = "own:"
"""Ids of the user's own voices begin with this and end with the recording's path."""
VOICE_TITLES = {"slt": "SLT (female, US English)", "rms": "RMS (male, US English)"}


def voices() -> tuple[Voice, ...]:
    """The voices that ship with Paretone; every model can use them, being recordings with transcripts."""
    return tuple(read_voice(resource("models", "f5-mini", "voices"), name) for name in VOICE_TITLES)


def read_voice(folder: Path, name: str) -> Voice:
    """A voice as the bundled model's folder holds it: ``name.wav``, and ``name.json`` with its text and phones."""
    data = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
    phones = tuple((phone, float(start), float(end)) for phone, start, end in data["phones"])
    return Voice(name, VOICE_TITLES.get(name, name), str(folder / f"{name}.wav"), data["text"], phones)


def voice(name: str) -> Voice:
    """The shipped voice called ``name``. Raises :class:`SettingError` that lists the known ones."""
    for one in voices():
        if one.id == name:
            return one
    raise SettingError(
        f"There is no voice named {name!r}; known voices: {', '.join(VOICE_TITLES)}. "
        "Use a recording of your own together with its transcript."
    )


def sentences() -> tuple[str, ...]:
    """Sentences to try."""
    return _lines("demo.txt")


def harvard_sentences() -> tuple[str, ...]:
    """The sentences that intelligibility is measured on, which no model here was trained on."""
    return _lines("harvard.txt")


def _lines(name: str) -> tuple[str, ...]:
    text = resource("sentences", name).read_text(encoding="utf-8")
    return tuple(line.strip() for line in text.splitlines() if line.strip())
