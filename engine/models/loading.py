"""From a catalogue entry, a folder and a device to a model that speaks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import torch

from engine import device as devices
from engine.audio.mel import VOCOS, MelFrontEnd
from engine.errors import CheckpointError
from engine.models import weight_sets
from engine.models.base import ModelInfo, SpeechModel, WeightSet
from engine.models.catalogue import CatalogueEntry, entry
from engine.models.checkpoints import fingerprint
from engine.models.diffusion import DiffusionTransformer
from engine.models.f5.adapter import F5Speech
from engine.models.f5.characters import CharacterFrontEnd
from engine.models.f5.checkpoint import F5Checkpoint, read_f5_checkpoint
from engine.models.f5.config import SAMPLE_RATE
from engine.models.f5.dit import DiT
from engine.models.f5.passages import TextFrontEnd
from engine.models.f5.phones import PhoneFrontEnd
from engine.models.f5.prompts import PromptReader
from engine.models.f5.text import Vocabulary
from engine.models.f5.unett import UNetT
from engine.models.precision import offered
from engine.models.vocos import Vocos


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
    target = devices.choose(device)
    torch.set_num_threads(devices.thread_count())
    # As speech takes shape, activations decay to numbers so small that processors compute with them in microcode: the
    # input convolutions of late steps took three times as long. Nothing audible is that small.
    torch.set_flush_denormal(True)

    status(f"Reading {chosen.title} …")
    # A folder of the user's own is described by its name or sidecar, and only then by the catalogue.
    checkpoint = read_f5_checkpoint(place, variant or ("" if folder else chosen.variant), check)
    if checkpoint.mel_style != VOCOS:
        raise CheckpointError(
            f"{checkpoint.path} was made for the {checkpoint.mel_style} vocoder, which Paretone does not have; "
            "choose a checkpoint for Vocos."
        )
    vocoder_folder = _vocoder_folder(chosen, place)
    status(f"Reading the vocoder in {vocoder_folder.name} …")
    vocoder = Vocos.load(vocoder_folder, target, check)
    status(f"Moving {chosen.title} to {devices.title(target)} …")
    backbone = _fused(checkpoint, target)
    check()
    front_end = _front_end(checkpoint)
    reads_phones = isinstance(front_end, PhoneFrontEnd)
    digest = fingerprint(checkpoint.path, check)
    trained_weight = weight_sets.cfg_free_weight(checkpoint.path)
    places = weight_sets.folders(chosen.id, checkpoint.path)
    info = ModelInfo(
        id=chosen.id,
        title=chosen.title,
        family=chosen.family,
        variant=checkpoint.variant,
        checkpoint=str(checkpoint.path),
        fingerprint=digest,
        licence=chosen.licence,
        device=devices.title(target),
        precision="float32",
        sample_rate=SAMPLE_RATE,
        layers=checkpoint.config.depth,
        branches=2 if trained_weight is None else 1,
        parameters=sum(one.numel() for one in backbone.parameters()),
        text_front_end=checkpoint.text_front_end,
        knobs=chosen.options,
        precisions=offered(target) if isinstance(backbone, DiffusionTransformer) else ("float32",),
        weight_sets=weight_sets.find_weight_sets(places, digest, check),
        cfg_free_weight=trained_weight,
    )

    architecture = replace(checkpoint, weights={})  # The backbone has them: no need to keep them twice.

    def read_weights(one: WeightSet) -> DiT | UNetT:
        return _fused(architecture.with_weights(Path(one.path)), target)

    prompts = PromptReader(MelFrontEnd(), reads_phones)
    speech = F5Speech(info, backbone, vocoder, front_end, prompts, read_weights)
    status("Warming up …")
    speech.warm_up()
    return speech


def _fused(checkpoint: F5Checkpoint, device: torch.device) -> DiT | UNetT:
    backbone = checkpoint.build().to(device)
    backbone.fuse()
    return backbone


def _vocoder_folder(chosen: CatalogueEntry, place: Path) -> Path:
    """Beside the model where it was put there, else where the catalogue's lies."""
    beside = (place if place.is_dir() else place.parent).parent / chosen.vocoder
    return beside if beside.is_dir() else chosen.vocoder_folder


def _front_end(checkpoint: F5Checkpoint) -> TextFrontEnd:
    folder = checkpoint.path.parent
    if checkpoint.text_front_end == "phones":
        return PhoneFrontEnd(folder)
    if checkpoint.tokenizer == "byte":
        return CharacterFrontEnd(None, "byte")
    vocabulary = Vocabulary.read(folder / "vocab.txt")
    vocabulary.require_entries(checkpoint.config.text_num_embeds, str(folder / "vocab.txt"))
    return CharacterFrontEnd(vocabulary, checkpoint.tokenizer)
