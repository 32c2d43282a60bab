"""Models: the catalogue, safe loading, and one folder per model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from paretone.fields import typed
from paretone.observer import Check, Status

if TYPE_CHECKING:
    from paretone.models.base import SpeechModel


@typed
def load_model(
    model: str,
    folder: str = "",
    variant: str = "",
    device: str = "auto",
    status: Status = lambda text: None,
    check: Check = lambda: None,
    vocoder: str = "",
) -> SpeechModel:
    """Load a model of the catalogue, from ``folder`` if given, onto ``device`` (``auto``, ``cpu``, ``cuda``, ``mps``).
    ``vocoder`` is the folder of its vocoder, if the model has a separate one in an unusual place. ``status`` reports
    progress; ``check`` is called between parts and may raise to cancel. Raises :class:`paretone.errors.PlainError`."""
    from paretone.models.loading import load  # Imports torch, which only loading needs.

    return load(model, folder, variant, device, status, check, vocoder)
