"""From a folder to an F5-TTS or E2-TTS model that speaks."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import torch

from paretone import device as devices
from paretone.audio.mel import VOCOS, MelFrontEnd
from paretone.errors import CheckpointError
from paretone.models.base import WeightSet
from paretone.models.f5.adapter import F5Speech
from paretone.models.f5.checkpoint import NATURAL_PHONES, F5Checkpoint, read_f5_checkpoint
from paretone.models.f5.config import SAMPLE_RATE
from paretone.models.f5.dit import DiT
from paretone.models.f5.front_end import CharacterFrontEnd, FramePhones, PromptReader, TextFrontEnd
from paretone.models.f5.text import Vocabulary
from paretone.models.f5.unett import UNetT
from paretone.models.files import interval_weights, weight_sets
from paretone.models.files.checkpoints import fingerprint
from paretone.models.kernels.precision import offered
from paretone.models.load_request import LoadRequest


def load_f5(request: LoadRequest) -> F5Speech:
    """Load a checkpoint with its vocoder. Raises :class:`CheckpointError`."""
    chosen, place, target = request.entry, request.place, request.device
    # A folder of the user's own is described by its name or sidecar, and only then by the catalogue.
    own = place != chosen.folder
    checkpoint = read_f5_checkpoint(place, request.variant or ("" if own else chosen.variant), request.check)
    if checkpoint.mel_style != VOCOS:
        raise CheckpointError(
            f"{checkpoint.path} was made for the {checkpoint.mel_style} vocoder, which Paretone does not have; "
            "choose a checkpoint for Vocos."
        )
    vocoder = request.vocoder()
    request.status(f"Moving {chosen.title} to {devices.title(target)} …")
    backbone = _fused(checkpoint, target)
    request.check()
    front_end = _front_end(checkpoint)
    phones = front_end.phones if isinstance(front_end, FramePhones) else None
    digest = fingerprint(checkpoint.path, request.check)
    trained_weight = weight_sets.trained_guidance(checkpoint.path)
    places = weight_sets.folders(chosen.id, checkpoint.path)
    info = request.info(
        variant=checkpoint.variant,
        checkpoint=str(checkpoint.path),
        fingerprint=digest,
        sample_rate=SAMPLE_RATE,
        layers=checkpoint.config.depth,
        branches=2 if trained_weight is None else 1,
        parameters=sum(one.numel() for one in backbone.parameters()),
        text_front_end=checkpoint.text_front_end,
        precisions=offered(target),
        weight_sets=weight_sets.find_weight_sets(places, digest, request.check),
        interval_weights=interval_weights.find_interval_weights(
            interval_weights.folders(chosen.id, checkpoint.path), digest, request.check
        ),
        trained_guidance=trained_weight,
    )

    architecture = replace(checkpoint, weights={})  # The backbone has them: no need to keep them twice.

    def read_weights(one: WeightSet) -> DiT | UNetT:
        return _fused(architecture.with_weights(Path(one.path)), target)

    prompts = PromptReader(MelFrontEnd(), phones is not None, phones)
    return F5Speech(info, backbone, vocoder, front_end, prompts, read_weights)


def _fused(checkpoint: F5Checkpoint, device: torch.device) -> DiT | UNetT:
    backbone = checkpoint.build().to(device)
    backbone.fuse()
    return backbone


def _front_end(checkpoint: F5Checkpoint) -> TextFrontEnd:
    folder = checkpoint.path.parent
    if checkpoint.text_front_end == NATURAL_PHONES:
        return FramePhones(folder)
    if checkpoint.tokenizer == "byte":
        return CharacterFrontEnd(None, "byte")
    vocabulary = Vocabulary.read(folder / "vocab.txt")
    vocabulary.require_entries(checkpoint.config.text_num_embeds, str(folder / "vocab.txt"))
    return CharacterFrontEnd(vocabulary, checkpoint.tokenizer)
