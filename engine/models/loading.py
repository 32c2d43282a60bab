"""From a catalogue entry, a folder and a device to a model that speaks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import torch

from engine import device as devices
from engine.errors import CheckpointError
from engine.models.base import SpeechModel
from engine.models.catalogue import entry
from engine.models.cosyvoice2.loading import load_cosyvoice2
from engine.models.f5.loading import load_f5
from engine.models.families.flow import FlowSpeech
from engine.models.families.language import LanguageSpeech
from engine.models.families.masked import MaskedSpeech
from engine.models.llasa.loading import load_llasa
from engine.models.load_request import LoadRequest
from engine.models.megatts3.loading import load_megatts3
from engine.models.minis.lm_mini.loading import load_lm_mini
from engine.models.minis.omni_mini.loading import load_omni_mini
from engine.models.omnivoice.loading import load_omnivoice
from engine.techniques.registry import lacking

LOADERS: Mapping[str, Callable[[LoadRequest], FlowSpeech | LanguageSpeech | MaskedSpeech]] = {
    "f5": load_f5,
    "megatts3": load_megatts3,
    "lm_mini": load_lm_mini,
    "omni_mini": load_omni_mini,
    "cosyvoice2": load_cosyvoice2,
    "llasa": load_llasa,
    "omnivoice": load_omnivoice,
}
"""By the catalogue's ``loader``."""


def load(
    model: str, folder: str, variant: str, device: str, status: Callable[[str], None], check: Callable[[], None]
) -> SpeechModel:
    """See :func:`engine.models.load_model`."""
    chosen = entry(model)
    place = Path(folder) if folder else chosen.folder
    if not place.exists():
        raise CheckpointError(
            f"{chosen.title} is not in {place}; download it, or choose the folder that holds its checkpoint."
        )
    torch.set_num_threads(devices.thread_count())
    # As speech takes shape, activations decay to numbers so small that processors compute with them in microcode: the
    # input convolutions of late steps took three times as long. Nothing audible is that small.
    torch.set_flush_denormal(True)
    devices.keep_freed_memory()
    status(f"Reading {chosen.title} …")
    on = devices.choose(device)
    speech = LOADERS[chosen.loader](LoadRequest(chosen, place, variant, on, status, check))
    reasons = lacking(chosen.family, dict(devices.lacking(on)))
    speech.info = replace(speech.info, lacking=tuple(reasons.items()))
    status("Warming up …")
    speech.warm_up()
    return speech
