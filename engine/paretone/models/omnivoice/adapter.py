"""OmniVoice: implementation of :class:`paretone.models.families.masked.MaskedSpeech`.

A text of more than 30 s is spoken in chunks of about 15 s. Each continues the reference or the first chunk.
"""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import torch
from torch import Tensor

from paretone import device as devices
from paretone.errors import CheckpointError
from paretone.models.base import ModelInfo, Voice
from paretone.models.families.masked import MaskedScript, MaskedSpeech, offered
from paretone.models.families.passages import Passages
from paretone.models.families.speech import Joiner
from paretone.models.kernels.fused_masked import FusedMasked, MaskedRequest
from paretone.models.loading import LoadRequest
from paretone.models.networks.masked_network import MaskedNetwork
from paretone.models.omnivoice.checkpoint import OmniVoiceFolder
from paretone.models.omnivoice.front_end import (
    OmniVoicePassage,
    OmniVoicePrompt,
    StreamedPassages,
    VoiceReader,
    WholePassages,
    prepare,
)
from paretone.models.omnivoice.higgs import HiggsDecoder, WindowedHiggs
from paretone.models.omnivoice.text import OmniVoiceTokenizer, combined
from paretone.observer import Check, Observer
from paretone.paths import data_folder
from paretone.sampling.demasking import Guide
from paretone.setting.knobs import Values

WARM_UP_FRAMES = 12


class OmniVoiceSpeech(MaskedSpeech):
    def __init__(
        self,
        info: ModelInfo,
        network: MaskedNetwork,
        codec: HiggsDecoder,
        tokenizer: OmniVoiceTokenizer,
        voices: VoiceReader,
    ) -> None:
        self.codec, self._tokenizer, self._voices = codec, tokenizer, voices
        super().__init__(info, network, 1 / codec.config.frame_rate)

    @torch.inference_mode()
    def first_run(self, network: FusedMasked) -> None:
        config = network.config
        text = torch.zeros(WARM_UP_FRAMES, dtype=torch.long, device=network.device)
        codes = torch.full((config.codebooks, WARM_UP_FRAMES), config.mask, device=network.device)
        run = network.begin(MaskedRequest(text, codes[:, :0], WARM_UP_FRAMES), 1.0)
        run.scores(codes, 0, WARM_UP_FRAMES, Guide.BOTH)
        WindowedHiggs(self.codec).whole(codes)
        devices.synchronise(network.device)

    def ready_voice(self, voice: Voice, options: Values, observer: Observer) -> None:
        if options["clone"]:
            self._voices(voice, bool(options["prepare"]), observer.check, observer.status)

    def prompt(self, voice: Voice, options: Values, check: Check) -> OmniVoicePrompt:
        if not options["clone"]:
            return OmniVoicePrompt()
        return self._voices(voice, bool(options["prepare"]), check)

    def passages(
        self, text: str, voice: Voice, prompt: OmniVoicePrompt, options: Values, seed: int | None = None
    ) -> Passages[OmniVoicePassage]:
        return prepare(text, prompt, options)

    def following(
        self,
        passage: OmniVoicePassage,
        prompt: OmniVoicePrompt,
        options: Values,
        first: OmniVoicePassage,
        codes: Tensor,
    ) -> tuple[OmniVoicePassage, OmniVoicePrompt]:
        if prompt.codes is not None:
            return passage, prompt
        return passage.after(first), replace(prompt, transcript=first.text, codes=codes)

    def request(self, passage: OmniVoicePassage, prompt: OmniVoicePrompt, options: Values) -> MaskedRequest:
        ids = self._tokenizer.prompt(
            combined(passage.text, prompt.transcript),
            passage.language,
            passage.instruct,
            denoise=bool(options["denoise"]) and prompt.codes is not None,
        )
        text = torch.tensor(ids, device=self._device)
        codes = prompt.codes
        if codes is None:
            codes = text.new_zeros(self.networks.plain.config.codebooks, 0)
        return MaskedRequest(text, codes, passage.frames)

    def decoder(self, prompt: OmniVoicePrompt, options: Values) -> WindowedHiggs:
        return WindowedHiggs(self.codec)

    def _joiner(self, script: MaskedScript) -> Joiner:
        rate, prompt = self.info.sample_rate, cast("OmniVoicePrompt", script.prompt)
        if script.plan.blocks is None:
            return WholePassages(rate, prompt.level, cut=bool(script.options["post_process"]))
        return StreamedPassages(rate, prompt.level)


def load_omnivoice(request: LoadRequest) -> OmniVoiceSpeech:
    """Load network, tokenizer and the codec's decoder; the voice encoder is loaded with the first new voice. Raises
    :class:`CheckpointError`."""
    chosen, device = request.entry, request.device
    request.require_folder("config.json, tokenizer.json and audio_tokenizer")
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
        text_front_end="qwen3",
        precisions=offered(device),
    )
    cache = data_folder() / "cache" / "higgs"
    voices = VoiceReader(folder, cache, codec.config.sample_rate, codec.config.hop, device)
    return OmniVoiceSpeech(info, network, codec, tokenizer, voices)
