"""From a catalogue entry, a folder and a device to a model that speaks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from paretone import device as devices
from paretone.errors import CheckpointError
from paretone.models.base import ModelInfo, SpeechModel, TrainedWeights
from paretone.models.catalogue import entry
from paretone.models.files.bundled import require_shipped, verified_meanwhile
from paretone.models.files.checkpoints import require_part
from paretone.models.files.config_file import weight_files
from paretone.models.files.releases import RELEASES
from paretone.models.load_request import LoadRequest
from paretone.paths import resource
from paretone.reading import is_regular
from paretone.setting.plan import imported

if TYPE_CHECKING:
    from paretone.models.families.flow import FlowSpeech
    from paretone.models.families.language import LanguageSpeech
    from paretone.models.families.masked import MaskedSpeech

PARTS = "tokenizer", "codec"
"""Folders of a bundled model's parts, which nothing hashes while loading."""
DECODER = "models", "natural-decoder"
"""Resource folder of what every model of natural speech is decoded by."""
LOADERS: Mapping[str, str] = {
    "f5": "paretone.models.f5.loading:load_f5",
    "megatts3": "paretone.models.megatts3.loading:load_megatts3",
    "lm_mini": "paretone.models.minis.lm_mini:load_lm_mini",
    "omni_mini": "paretone.models.minis.omni_mini:load_omni_mini",
    "cosyvoice2": "paretone.models.cosyvoice2.loading:load_cosyvoice2",
    "llasa": "paretone.models.llasa.loading:load_llasa",
    "omnivoice": "paretone.models.omnivoice.loading:load_omnivoice",
}
"""The function that loads a model from a :class:`LoadRequest`, by the catalogue's ``loader``. Functions are imported
when they load, so that loading one model does not import the code of the others."""


def load(
    model: str,
    folder: str,
    variant: str,
    device: str,
    status: Callable[[str], None],
    check: Callable[[], None],
    vocoder: str = "",
) -> SpeechModel:
    """See :func:`paretone.models.load_model`."""
    chosen = entry(model)
    place = Path(folder) if folder else chosen.folder
    if not place.exists():
        error = CheckpointError(
            f"{chosen.title} is not in {place}; download it, or choose the folder that holds its checkpoint."
        )
        error.command = f"paretone download {chosen.id}" if chosen.id in RELEASES and not folder else ""
        raise error
    torch.set_num_threads(devices.thread_count())
    # As speech takes shape, activations decay to numbers so small that processors compute with them in microcode: the
    # input convolutions of late steps took three times as long. Nothing audible is that small.
    torch.set_flush_denormal(True)
    devices.keep_freed_memory()
    status(f"Reading {chosen.title} …")
    on = devices.choose(device)
    chosen.require_vocoder(vocoder)
    _require_weights(place / chosen.weights)
    request = LoadRequest(chosen, place, variant, on, status, check, vocoder)
    require_parts_shipped = verified_meanwhile(
        (*map(place.joinpath, PARTS), request.vocoder_folder, resource(*DECODER))
    )
    load_chosen: Callable[[LoadRequest], FlowSpeech | LanguageSpeech | MaskedSpeech] = imported(LOADERS[chosen.loader])
    speech = load_chosen(request)
    for path, digest in _hashed(speech.info):
        require_shipped(Path(path), digest)
    speech.info = replace(speech.info, lacking=devices.lacking(on), device_type=on.type)
    status("Warming up …")
    speech.warm_up()
    require_parts_shipped()
    return speech


def _require_weights(folder: Path) -> None:
    """Raise :class:`CheckpointError` if none of the weight files in ``folder`` can be read, as in a clone without Git
    LFS. Otherwise the error would be about the first other file that is missing."""
    weights = weight_files(folder)
    if weights and not any(map(is_regular, weights)):
        require_part(weights[0], "choose another folder or download the model")


def _hashed(info: ModelInfo) -> tuple[tuple[str, str], ...]:
    """Files whose SHA-256 was found while loading, with it."""
    trained: tuple[TrainedWeights, ...] = (*info.weight_sets, *info.interval_weights, *info.drafts, *info.students)
    return (info.checkpoint, info.fingerprint), *((one.path, one.fingerprint) for one in trained)
