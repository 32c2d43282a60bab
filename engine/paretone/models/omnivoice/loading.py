"""From the official folder to an OmniVoice that speaks."""

from __future__ import annotations

from paretone.errors import CheckpointError
from paretone.models.families.masked_networks import offered
from paretone.models.load_request import LoadRequest
from paretone.models.omnivoice.adapter import OmniVoiceSpeech
from paretone.models.omnivoice.checkpoint import OmniVoiceFolder
from paretone.models.omnivoice.front_end import VoiceReader
from paretone.paths import data_folder

FRONT_END = "qwen3"
"""Name of the text front end."""


def load_omnivoice(request: LoadRequest) -> OmniVoiceSpeech:
    """Load network, tokenizer and the codec's decoder; what encodes voices is loaded when a voice is new.

    Raises :class:`CheckpointError`.
    """
    chosen, device = request.entry, request.device
    request.require_folder(
        "OmniVoice is a folder; choose the one with config.json, tokenizer.json and audio_tokenizer in it."
    )
    folder = OmniVoiceFolder(request.place, request.check)
    tokenizer, config = folder.tokenizer(), folder.config()
    if config.text_vocabulary < tokenizer.vocabulary:
        raise CheckpointError(
            f"{request.place} is not OmniVoice: its model knows {config.text_vocabulary} tokens of text, but its "
            f"tokenizer {tokenizer.vocabulary}."
        )
    request.status("Reading the codec …")
    codec = folder.decoder(device)
    if (codec.config.codebooks, codec.config.codebook_size) != (config.codebooks, config.mask):
        raise CheckpointError(
            f"The codec in {request.place} has {codec.config.codebooks} codebooks of {codec.config.codebook_size}, but "
            f"the model speaks {config.codebooks} of {config.mask}: they do not belong together. Download the release "
            "again."
        )
    request.status(f"Reading {chosen.title} …")
    shards = folder.shards
    network = folder.network(device)
    info = request.info(
        checkpoint=shards.where,
        fingerprint=shards.fingerprint(request.check),
        sample_rate=codec.config.sample_rate,
        layers=config.transformer.layers,
        branches=2,
        parameters=sum(one.numel() for one in network.parameters()),
        text_front_end=FRONT_END,
        precisions=offered(device),
    )
    cache = data_folder() / "cache" / "higgs"
    voices = VoiceReader(folder, cache, codec.config.sample_rate, codec.config.hop, device)
    return OmniVoiceSpeech(info, network, codec, tokenizer, voices)
