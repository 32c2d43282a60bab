"""Models: a catalogue of what there is, safe loading, one folder for each."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from paretone.models.base import SpeechModel


def load_model(
    model: str,
    folder: str = "",
    variant: str = "",
    device: str = "auto",
    status: Callable[[str], None] = lambda text: None,
    check: Callable[[], None] = lambda: None,
    vocoder: str = "",
) -> SpeechModel:
    """Load a model of the catalogue, from ``folder`` if given, onto ``device`` (``auto``, ``cpu``, ``cuda``, ``mps``).

    ``vocoder`` is the folder of its vocoder, for models that have one of their own, if that is not where it usually
    lies. ``status`` reports what is being done; ``check`` is called between its parts and may raise to cancel. Raises
    :class:`paretone.errors.PlainError` that says what is missing or wrong.
    """
    from paretone.models.loading import load  # Imports torch: only those who load a model need it.

    return load(model, folder, variant, device, status, check, vocoder)
