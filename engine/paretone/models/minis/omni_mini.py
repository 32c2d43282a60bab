"""The bundled masked model: implementation of :class:`paretone.models.families.masked.MaskedSpeech`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import cast

import numpy as np
import torch
from torch import Tensor

from paretone import device as devices
from paretone.audio.cross_fade import CrossFader, PassageJoiner
from paretone.errors import CheckpointError
from paretone.front_end.phones import PhoneVocabulary
from paretone.front_end.pronunciations import HowToRead
from paretone.models.base import ModelInfo, Voice
from paretone.models.families.masked import MaskedScript, MaskedSpeech, offered
from paretone.models.families.passages import Decoded, GridDecoder, Passages
from paretone.models.files.checkpoints import loaded_strictly, read_float_weights
from paretone.models.files.config_file import ConfigFile
from paretone.models.kernels.fused_masked import FusedMasked, MaskedRequest
from paretone.models.loading import LoadRequest
from paretone.models.minis import speaking
from paretone.models.minis.natural_decoder import SAMPLE_RATE
from paretone.models.minis.speaking import LAYOUT_FILE, MiniPassage, MiniPrompt, NaturalCoding
from paretone.models.networks.masked_network import MaskedConfig, MaskedNetwork
from paretone.models.networks.quantised_mel import ResidualCodec, read_quantised_mel, token_phones
from paretone.observer import Check
from paretone.sampling.demasking import Canvas, Rules, SeededCanvasNoise, demask
from paretone.sampling.demasking_schedule import Block
from paretone.setting.knobs import Values

HALVES = 2
"""Phones per token."""


@dataclass(frozen=True)
class Layout:
    """Meaning of a checkpoint's ids, from its ``layout.json``."""

    vocabulary: PhoneVocabulary
    """A token's id is the number of its first phone times the number of phones, plus the number of its second."""

    @classmethod
    def read(cls, path: Path) -> Layout:
        """Read a ``layout.json``. Raises :class:`CheckpointError`."""
        file = ConfigFile.read(path)
        layout = cls(PhoneVocabulary.read(file.text("phones")))
        declared, halves = file.number("text_tokens"), file.number("phones_per_token")
        if halves != HALVES or declared != layout.tokens:
            raise CheckpointError(
                f"{path} has {declared} text tokens of {halves} phones, where {len(layout.vocabulary.phones)} phones "
                f"make {layout.tokens} of {HALVES}; restore the model folder."
            )
        return layout

    @property
    def tokens(self) -> int:
        return len(self.vocabulary.phones) ** HALVES

    def text(self, frames: np.ndarray, stride: int) -> np.ndarray:
        """Phones of latent frames (n,) to token ids, one per ``stride`` frames: (n // stride,) int64."""
        whole = len(frames) // stride * stride
        halves = token_phones(frames[:whole], stride // HALVES).reshape(-1, HALVES).astype(np.int64)
        return halves[:, 0] * len(self.vocabulary.phones) + halves[:, 1]


def positions(frames: int) -> Tensor:
    """Positions (2 · frames,) of a text and its canvas."""
    return torch.arange(frames).repeat(2)


CODEC = "codec"


@dataclass(frozen=True)
class OmniMiniFolder(speaking.MiniFolder):
    def layout(self) -> Layout:
        return Layout.read(self.root / LAYOUT_FILE)

    def config(self) -> MaskedConfig:
        return MaskedConfig.read(ConfigFile.read(self.root / speaking.CONFIG))

    def network(self) -> MaskedNetwork:
        config, weights = self.config(), read_float_weights(self.weights_path, self.check)
        return loaded_strictly(lambda: MaskedNetwork(config), weights, str(self.weights_path), assign=True)

    def codec(self, device: torch.device | str = "cpu") -> ResidualCodec:
        return read_quantised_mel(self.root / CODEC, ResidualCodec, device)


class OmniMiniFrontEnd(speaking.MiniFrontEnd[ResidualCodec]):
    """Phones are (n,) ids of text tokens, codes (codebooks, n), both on the codec's device."""

    def __init__(self, coding: NaturalCoding[ResidualCodec], layout: Layout) -> None:
        super().__init__(coding, layout.vocabulary)
        self._layout = layout

    def _ids(self, by_frame: np.ndarray) -> Tensor:
        return torch.from_numpy(self._layout.text(by_frame, self._coding.stride)).to(self._coding.device)

    def _codes(self, codes: Tensor) -> Tensor:
        return codes.T.contiguous()


class ResidualGridDecoder(GridDecoder):
    def __init__(self, stream: speaking.StreamedSpeech, codebooks: int, device: torch.device) -> None:
        self._stream = stream
        self._none = torch.zeros(0, codebooks, dtype=torch.long, device=device)

    def push(self, codes: Tensor) -> np.ndarray:
        return self._stream.push(codes.T)

    def finish(self) -> np.ndarray:
        return self._stream.push(self._none, last=True)

    def whole(self, codes: Tensor) -> Decoded:
        return self._stream.whole(codes.T)

    @property
    def mel(self) -> np.ndarray | None:
        return self._stream.mel


WARM_UP_FRAMES = 30


class OmniMiniSpeech(speaking.MiniSpeech, MaskedSpeech):
    def __init__(
        self, info: ModelInfo, network: MaskedNetwork, coding: NaturalCoding[ResidualCodec], front_end: OmniMiniFrontEnd
    ) -> None:
        super().__init__(info, network, coding.token_seconds)
        self.coding, self.front_end = coding, front_end

    @torch.inference_mode()
    def first_run(self, network: FusedMasked) -> None:
        silence = torch.zeros(WARM_UP_FRAMES, dtype=torch.long, device=self._device)
        codec = self.coding.codec
        frames = codec.mel_mean.expand(1, WARM_UP_FRAMES * codec.config.stride, -1)
        prompt = MiniPrompt(silence, codec.encode(frames)[0].T, speaking.NOBODY)
        passage, rules = MiniPassage("", silence), Rules()
        canvas = Canvas(network.config.codebooks, passage.frames, network.config.mask, self._device)
        run = network.begin(self.request(passage, prompt, Values()), rules.guidance)
        block = Block(0, passage.frames, 2)
        for _ in demask(run, canvas, block, rules, SeededCanvasNoise(0, self._device)):
            pass
        decoder = self.decoder(prompt, Values())
        decoder.push(canvas.codes)
        decoder.finish()
        devices.synchronise(self._device)

    def prompt(self, voice: Voice, options: Values, check: Check) -> MiniPrompt:
        return self.front_end.prompt(voice)

    def passages(
        self, text: str, voice: Voice, prompt: MiniPrompt, options: Values, seed: int | None = None
    ) -> Passages[MiniPassage]:
        return self.front_end.passages(text, HowToRead.of(options, seed))

    def request(self, passage: MiniPassage, prompt: MiniPrompt, options: Values) -> MaskedRequest:
        text = torch.cat([prompt.phones, passage.phones])
        return MaskedRequest(text, prompt.codes, passage.frames, positions(len(text)).to(text.device))

    def decoder(self, prompt: MiniPrompt, options: Values) -> ResidualGridDecoder:
        coding = self.coding
        return ResidualGridDecoder(coding.stream(prompt.who), coding.codec.config.codebooks, coding.device)

    def _joiner(self, script: MaskedScript) -> PassageJoiner:
        fader = CrossFader(round(float(script.options["cross_fade"]) * SAMPLE_RATE))
        return PassageJoiner(fader, ends=[one.end for one in cast(tuple[MiniPassage, ...], script.passages)])


def load_omni_mini(request: LoadRequest) -> OmniMiniSpeech:
    device = request.device
    request.require_folder("config.json, model.safetensors and the folder codec")
    folder = OmniMiniFolder(request.place, request.check)
    layout, network = folder.layout(), folder.network().to(device)
    codec = folder.codec(device)
    config, sizes = network.config, codec.config
    if (config.codebooks, config.mask) != (sizes.codebooks, sizes.codes):
        raise CheckpointError(
            f"The codec in {request.place} has {sizes.codebooks} codebooks of {sizes.codes} codes, but the model "
            f"speaks {config.codebooks} of {config.mask}: they do not belong together. Restore the model folder."
        )
    if config.text_vocabulary != layout.tokens:
        raise CheckpointError(
            f"The model in {request.place} knows {config.text_vocabulary} text tokens, but its layout.json names "
            f"{layout.tokens}; restore the model folder."
        )
    info = speaking.mini_info(
        request,
        folder.weights_path,
        layers=config.transformer.layers,
        branches=2,
        parameters=sum(one.numel() for one in network.parameters()),
        precisions=offered(device),
    )
    coding = speaking.natural_coding(request, codec)
    return OmniMiniSpeech(info, network, coding, OmniMiniFrontEnd(coding, layout))
