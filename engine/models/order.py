"""What is to be loaded: the same for all models."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch

from engine.models.catalogue import CatalogueEntry
from engine.models.vocos import Vocos


@dataclass(frozen=True)
class Order:
    """One model of the catalogue, and where it is and goes to."""

    entry: CatalogueEntry
    place: Path
    """The folder of the checkpoint, or its file; it exists."""
    variant: str
    """What the caller says about the architecture, or ``""``."""
    device: torch.device
    status: Callable[[str], None]
    """Is told what is being done."""
    check: Callable[[], None]
    """Is called between the parts, and may raise to cancel."""

    @property
    def vocoder_folder(self) -> Path:
        """The model's vocoder: beside the model where it was put there, else where the catalogue's lies."""
        beside = (self.place if self.place.is_dir() else self.place.parent).parent / self.entry.vocoder
        return beside if beside.is_dir() else self.entry.vocoder_folder

    def vocoder(self) -> Vocos:
        """The model's vocoder, read. Raises :class:`engine.errors.CheckpointError`."""
        folder = self.vocoder_folder
        self.status(f"Reading the vocoder in {folder.name} …")
        return Vocos.load(folder, self.device, self.check)
