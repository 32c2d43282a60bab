"""From a folder to a LLaSA that speaks, with XCodec2 next to it."""

from __future__ import annotations

import torch

from paretone.models.files.language_weights import find_language_weights, places
from paretone.models.llasa.adapter import LlasaSpeech
from paretone.models.llasa.checkpoint import LlasaFolder, load_decoder, parameters
from paretone.models.llasa.voices import VoiceEncoder, VoiceReader
from paretone.models.llasa.xcodec2 import SAMPLE_RATE
from paretone.models.load_request import LoadRequest
from paretone.paths import data_folder

FRONT_END = "llama"
"""Name of the text front end: Llama's tokenizer reads texts as they are."""
DTYPE_NAMES = {torch.float32: "float32", torch.bfloat16: "bfloat16"}


def load_llasa(request: LoadRequest) -> LlasaSpeech:
    """Load language model, tokenizer and XCodec2's decoder; what encodes voices is loaded when a voice is new.

    Raises :class:`CheckpointError`.
    """
    chosen, device = request.entry, request.device
    request.require_folder("LLaSA is a folder; choose the one that holds config.json and tokenizer.json.")
    dtype = computed_in(device)
    folder = LlasaFolder.read(request.place, dtype, device)
    request.status("Reading XCodec2 …")
    codec = load_decoder(request.vocoder_folder, device, request.check)
    encoder = VoiceEncoder(request.vocoder_folder, data_folder() / "cache" / "xcodec2", device)
    request.status(f"Reading {chosen.title} …")
    network = folder.plain(request.check)
    digest = folder.shards.fingerprint(request.check)
    info = request.info(
        checkpoint=folder.shards.where,
        fingerprint=digest,
        precision=DTYPE_NAMES[dtype],
        sample_rate=SAMPLE_RATE,
        layers=folder.config.layers,
        branches=1,
        parameters=parameters(network),
        text_front_end=FRONT_END,
        precisions=(DTYPE_NAMES[dtype],),
    )
    info = find_language_weights(places(chosen.id, request.place), digest, request.check).on(info)
    return LlasaSpeech(info, folder, network, codec, VoiceReader(encoder, folder.tokenizer.codes))


def computed_in(device: torch.device) -> torch.dtype:
    """Precision on ``device`` of the weights, which are published in bfloat16."""
    return torch.bfloat16 if device.type == "cuda" and torch.cuda.is_bf16_supported() else torch.float32
