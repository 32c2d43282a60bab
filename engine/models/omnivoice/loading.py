"""From the official folder to an OmniVoice that speaks."""

from __future__ import annotations

from engine.errors import CheckpointError
from engine.models.families.masked_networks import offered
from engine.models.load_request import Order
from engine.models.omnivoice.adapter import OmniVoiceSpeech
from engine.models.omnivoice.checkpoint import OmniVoiceFolder
from engine.models.omnivoice.voices import VoiceReader
from engine.paths import data_folder

FRONT_END = "qwen3"
"""Name of the text front end."""


def load_omnivoice(order: Order) -> OmniVoiceSpeech:
    """Load network, tokenizer and the codec's decoder; what encodes voices is loaded when a voice is new.

    Raises :class:`CheckpointError`.
    """
    chosen, device = order.entry, order.device
    order.require_folder(
        "OmniVoice is a folder; choose the one with config.json, tokenizer.json and audio_tokenizer in it."
    )
    folder = OmniVoiceFolder(order.place, order.check)
    tokenizer, config = folder.tokenizer(), folder.config()
    if config.text_vocabulary < tokenizer.vocabulary:
        raise CheckpointError(
            f"{order.place} is not OmniVoice: its model knows {config.text_vocabulary} tokens of text, but its "
            f"tokenizer {tokenizer.vocabulary}."
        )
    order.status("Reading the codec …")
    codec = folder.decoder(device)
    if (codec.config.codebooks, codec.config.codebook_size) != (config.codebooks, config.mask):
        raise CheckpointError(
            f"The codec in {order.place} has {codec.config.codebooks} codebooks of {codec.config.codebook_size}, but "
            f"the model speaks {config.codebooks} of {config.mask}: they do not belong together. Fetch the release "
            "again."
        )
    order.status(f"Reading {chosen.title} …")
    shards = folder.shards
    network = folder.network(device)
    info = order.info(
        checkpoint=shards.where,
        fingerprint=shards.fingerprint(order.check),
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
