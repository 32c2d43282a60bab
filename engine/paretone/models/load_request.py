"""Request to load a model, the same for all models."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from paretone import device as devices
from paretone.errors import CheckpointError
from paretone.models.base import ModelInfo
from paretone.models.catalogue import CatalogueEntry
from paretone.models.files.checkpoints import fingerprint
from paretone.models.files.config_file import weight_files
from paretone.models.minis.natural_vocoder import LatentVocoder
from paretone.models.vocoders import Vocoder, load_vocoder


@dataclass(frozen=True)
class LoadRequest:
    """One model of the catalogue, and where it is and goes to."""

    entry: CatalogueEntry
    place: Path
    """The folder of the checkpoint, or its file; it exists."""
    variant: str
    """Architecture given by the caller, or ``""``."""
    device: torch.device
    status: Callable[[str], None]
    """Status callback."""
    check: Callable[[], None]
    """Is called between the parts, and may raise to cancel."""
    own_vocoder: str = ""
    """Folder of the vocoder, if not the usual one."""

    def require_folder(self, reason: str) -> None:
        """Raise :class:`CheckpointError` if :attr:`place` is a file; ``reason`` says why that will not do, and what
        will."""
        if not self.place.is_dir():
            raise CheckpointError(f"{self.place} is a file, but {reason}")

    def info(self, **found: Any) -> ModelInfo:
        """The model's information: known before reading, and ``found`` while reading."""
        known: dict[str, Any] = {
            "id": self.entry.id,
            "title": self.entry.title,
            "family": self.entry.family,
            "variant": self.variant or self.entry.variant,
            "licence": self.entry.licence,
            "device": devices.title(self.device),
            "precision": "float32",
            "knobs": self.entry.options,
            "guidance": self.entry.guidance,
            "mel_steps": self.entry.mel_steps,
            "vocoder": self._other_vocoder(),
        }
        return ModelInfo(**known | found)

    @property
    def vocoder_folder(self) -> Path:
        """The model's vocoder: the one that was asked for, else next to the model where it was put there, else where
        the catalogue's lies."""
        if self.own_vocoder:
            return Path(self.own_vocoder)
        own = (self.place if self.place.is_dir() else self.place.parent).parent / self.entry.vocoder
        return own if own.is_dir() else self.entry.vocoder_folder

    def vocoder(self) -> Vocoder:
        """The model's vocoder, read. Raises :class:`CheckpointError`."""
        return load_vocoder(self._announced_vocoder(), self.device, self.check)

    def natural_vocoder(self) -> LatentVocoder:
        """The same for a model of natural speech."""
        vocoder = self.vocoder()
        if not isinstance(vocoder, LatentVocoder):
            raise CheckpointError(
                f"The model in {self.place} makes natural speech, which the vocoder in {self.vocoder_folder} cannot "
                "decode; put that of natural speech there."
            )
        return vocoder

    def _other_vocoder(self) -> str:
        """SHA-256 of a vocoder of the user's, or ``""`` if it is the usual one, wherever that lies."""
        if not self.own_vocoder:
            return ""
        usual = replace(self, own_vocoder="").vocoder_folder
        own, there = (self._digest(one) for one in (Path(self.own_vocoder), usual))
        return "" if own == there else own

    def _digest(self, folder: Path) -> str:
        found = [f"{one.name}:{fingerprint(one, self.check)}" for one in weight_files(folder) if one.is_file()]
        return hashlib.sha256("\n".join(found).encode()).hexdigest() if found else ""

    def _announced_vocoder(self) -> Path:
        folder = self.vocoder_folder
        self.status(f"Reading the vocoder in {folder.name} …")
        return folder
