"""The bundled masked model that speaks: what :class:`paretone.models.families.masked.MaskedSpeech` leaves to a
model."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import numpy as np
import torch

from paretone import device as devices
from paretone.audio.cross_fade import CrossFader, PassageJoiner
from paretone.models.base import ModelInfo, Voice
from paretone.models.families.masked import MaskedSpeech
from paretone.models.families.masked_script import MaskedScript
from paretone.models.kernels.fused_masked import FusedMasked
from paretone.models.kernels.masked_rows import MaskedRequest
from paretone.models.minis.frames import SAMPLE_RATE
from paretone.models.minis.natural.coding import NOBODY, NaturalCoding
from paretone.models.minis.omni_mini.codec import ResidualCodec
from paretone.models.minis.omni_mini.decoding import ResidualGridDecoder
from paretone.models.minis.omni_mini.front_end import (
    OmniMiniFrontEnd,
    OmniMiniPassage,
    OmniMiniPassages,
    OmniMiniPrompt,
)
from paretone.models.minis.omni_mini.layout import positions
from paretone.models.networks.masked_network import MaskedNetwork
from paretone.observer import Observer
from paretone.sampling.demasking import Canvas, Rules, SeededCanvasNoise, demask
from paretone.sampling.demasking_schedule import Block
from paretone.setting.knobs import Values

WARM_UP_FRAMES = 30


class OmniMiniSpeech(MaskedSpeech):
    """The loaded bundled masked model."""

    def __init__(
        self,
        info: ModelInfo,
        network: MaskedNetwork,
        coding: NaturalCoding[ResidualCodec],
        front_end: OmniMiniFrontEnd,
    ) -> None:
        super().__init__(info, network, coding.token_seconds)
        self._coding, self._front_end = coding, front_end

    def copied(self, samples: np.ndarray, voice: Voice) -> np.ndarray:
        """Copy of speech (n,) of ``voice`` through the codec, float32 at the model's rate."""
        return self._coding.copied(samples, self._front_end.prompt(voice).who)

    @torch.inference_mode()
    def _warm_up(self, network: FusedMasked) -> None:
        silence = torch.zeros(WARM_UP_FRAMES, dtype=torch.long, device=self._device)
        codec = self._coding.codec
        frames = codec.mel_mean.expand(1, WARM_UP_FRAMES * codec.config.stride, -1)
        prompt = OmniMiniPrompt(silence, codec.encode(frames)[0].T, NOBODY)
        passage = OmniMiniPassage("", silence)
        rules = Rules()
        request = self._request(passage, prompt, Values())
        canvas = Canvas(network.config.codebooks, passage.frames, network.config.mask, self._device)
        run = network.begin(request, rules.guidance)
        block = Block(0, passage.frames, 2)
        for _ in demask(run, canvas, block, rules, SeededCanvasNoise(0, self._device)):
            pass
        decoder = self._decoder(prompt, Values())
        decoder.push(canvas.codes)
        decoder.finish()
        devices.synchronise(self._device)

    def _prompt(self, voice: Voice, options: Values, check: Callable[[], None]) -> OmniMiniPrompt:
        return self._front_end.prompt(voice)

    def _ready_voice(self, voice: Voice, options: Values, observer: Observer) -> None:
        self._front_end.prompt(voice)

    def _passages(
        self, text: str, voice: Voice, prompt: OmniMiniPrompt, options: Values, seed: int | None = None
    ) -> OmniMiniPassages:
        return self._front_end.passages(text, float(options["speed"]), bool(options["by_sentence"]), seed)

    def _request(self, passage: OmniMiniPassage, prompt: OmniMiniPrompt, options: Values) -> MaskedRequest:
        text = torch.cat([prompt.tokens, passage.tokens])
        return MaskedRequest(text, prompt.codes, passage.frames, positions(len(text)).to(text.device))

    def _decoder(self, prompt: OmniMiniPrompt, options: Values) -> ResidualGridDecoder:
        coding = self._coding
        return ResidualGridDecoder(coding.stream(prompt.who), coding.codec.config.codebooks, coding.device)

    def _joiner(self, script: MaskedScript) -> PassageJoiner:
        fader = CrossFader(round(float(script.options["cross_fade"]) * SAMPLE_RATE))
        passages = cast(tuple[OmniMiniPassage, ...], script.passages)
        return PassageJoiner(fader, ends=[one.end for one in passages])
