"""The bundled masked model that speaks: what :class:`paretone.models.families.masked.MaskedSpeech` leaves to a
model."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor

from paretone import device as devices
from paretone.audio.cross_fade import CrossFader, PassageJoiner
from paretone.audio.mel import MelFrontEnd
from paretone.errors import CheckpointError
from paretone.front_end.phones import PhoneVocabulary, TimedPhone
from paretone.models.base import ModelInfo, Voice
from paretone.models.f5.front_end import Prompt as ReadPrompt
from paretone.models.f5.front_end import PromptReader
from paretone.models.families.masked import MaskedScript, MaskedSpeech, offered
from paretone.models.families.passages import Decoded
from paretone.models.families.token_decoder import GridDecoder
from paretone.models.families.voices import Remembered
from paretone.models.files.checkpoints import fingerprint, load_strictly, read_float_weights
from paretone.models.files.config_file import ConfigFile
from paretone.models.kernels.fused_masked import FusedMasked, MaskedRequest
from paretone.models.loading import LoadRequest
from paretone.models.minis.natural_decoder import SAMPLE_RATE
from paretone.models.minis.speaking import (
    CONFIG,
    LAYOUT_FILE,
    NATURAL_PHONES,
    NOBODY,
    MiniFolder,
    NaturalCoding,
    NaturalVoice,
    StreamedSpeech,
    Texts,
    natural_coding,
    phones_of_prompt,
)
from paretone.models.networks.masked_network import MaskedConfig, MaskedNetwork
from paretone.models.networks.quantised_mel import ResidualCodec, read_quantised_mel, token_phones
from paretone.models.networks.shapes import without_weights
from paretone.observer import Observer
from paretone.sampling.demasking import Canvas, Rules, SeededCanvasNoise, demask
from paretone.sampling.demasking_schedule import Block
from paretone.setting.knobs import Values

HALVES = 2
"""Phones of a token."""


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
        """Number of different text tokens."""
        return len(self.vocabulary.phones) ** HALVES

    def as_dict(self) -> dict[str, Any]:
        return {
            "phones": " ".join(self.vocabulary.phones),
            "phones_per_token": HALVES,
            "text_tokens": self.tokens,
            "text_ids": "number of the first phone times the number of phones, plus number of the second",
            "positions": "text from 0, canvas from 0 again",
        }

    def text(self, frames: np.ndarray, stride: int) -> np.ndarray:
        """Phones of latent frames (n,) to token ids, one per ``stride`` frames: (n // stride,) int64."""
        whole = len(frames) // stride * stride
        halves = token_phones(frames[:whole], stride // HALVES).reshape(-1, HALVES).astype(np.int64)
        return halves[:, 0] * len(self.vocabulary.phones) + halves[:, 1]


def positions(frames: int) -> Tensor:
    """(2 · frames,) of a text and its canvas."""
    return torch.arange(frames).repeat(2)


CODEC = "codec"


@dataclass(frozen=True)
class OmniMiniFolder(MiniFolder):
    """A folder of this layout."""

    def layout(self) -> Layout:
        """Layout of text tokens."""
        return Layout.read(self.root / LAYOUT_FILE)

    def config(self) -> MaskedConfig:
        """Sizes of the network."""
        return MaskedConfig.read(ConfigFile.read(self.root / CONFIG))

    def network(self) -> MaskedNetwork:
        """The network in float32, on the processor."""
        config, weights = self.config(), read_float_weights(self.weights_path, self.check)
        with without_weights(weights, str(self.weights_path)):
            network = MaskedNetwork(config)
        load_strictly(network, weights, str(self.weights_path), assign=True)
        return network.eval().requires_grad_(False)

    def codec(self, device: torch.device | str = "cpu") -> ResidualCodec:
        """The codec of what is said and codes."""
        return read_quantised_mel(self.root / CODEC, ResidualCodec, device)


@dataclass(frozen=True)
class OmniMiniPrompt:
    """A voice made ready."""

    tokens: Tensor = field(repr=False)
    """(n,) ids of the text, one for every frame."""
    codes: Tensor = field(repr=False)
    """(codebooks, n)."""
    who: NaturalVoice = field(repr=False)
    """Who speaks."""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class OmniMiniPassage:
    """One piece of text."""

    text: str
    tokens: Tensor = field(repr=False)
    """(n,) ids, one for every frame that is to come."""
    end: int = 0
    """Sample at which its last sound is over."""

    @property
    def frames(self) -> int:
        """Frames of its canvas."""
        return len(self.tokens)


@dataclass(frozen=True)
class OmniMiniPassages:
    """A whole text."""

    passages: tuple[OmniMiniPassage, ...]
    notes: tuple[str, ...] = ()


class OmniMiniFrontEnd:
    """Makes voices and texts ready, and remembers the last voice. What it gives is on the codec's device."""

    def __init__(self, coding: NaturalCoding[ResidualCodec], texts: Texts, layout: Layout) -> None:
        self._coding, self._texts, self._layout = coding, texts, layout
        self._read_prompt = PromptReader(MelFrontEnd(), True, layout.vocabulary.index)
        self._prompts: Remembered[OmniMiniPrompt] = Remembered(operator.is_)

    def passages(self, text: str, speed: float, by_sentence: bool, seed: int | None = None) -> OmniMiniPassages:
        """``text`` in pieces; see :meth:`paretone.models.minis.speaking.Texts.spoken`.

        Raises :class:`paretone.errors.TextError`.
        """
        pieces, notes = self._texts.spoken(text, speed, by_sentence, seed)
        return OmniMiniPassages(
            tuple(
                OmniMiniPassage(piece, self._tokens(phones), self._coding.end_of(phones)) for piece, phones in pieces
            ),
            notes,
        )

    def prompt(self, voice: Voice) -> OmniMiniPrompt:
        """``voice`` made ready. Raises :class:`paretone.errors.AudioError` and :class:`paretone.errors.TextError`."""
        read = self._read_prompt(voice)
        return self._prompts.of(read, lambda: self._encoded(read))

    @torch.inference_mode()
    def _encoded(self, read: ReadPrompt) -> OmniMiniPrompt:
        coding = self._coding
        phones, notes = phones_of_prompt(read, self._texts)
        frames = coding.frames(read.mel[:, : read.frames])
        who = NaturalVoice.of(frames)
        codes = coding.codes(frames, who).T.contiguous()
        return OmniMiniPrompt(self._tokens(phones, codes.shape[1]), codes, who, notes)

    def _tokens(self, phones: Sequence[TimedPhone], count: int | None = None) -> Tensor:
        """``phones`` over a number of codec frames, by default as many as they fill. The network has never heard a
        frame that speech ends in, and would fill one that silence ends in with a burst."""
        stride = self._coding.stride
        if count is None:
            count = max(self._coding.frames_until(phones) // stride, 1)
        by_frame = self._coding.labels(phones, count * stride, self._layout.vocabulary)
        return torch.from_numpy(self._layout.text(by_frame, stride)).to(self._coding.device)


class ResidualGridDecoder(GridDecoder):
    """Hands a grid on to a stream of codes."""

    def __init__(self, stream: StreamedSpeech, codebooks: int, device: torch.device) -> None:
        """``device`` is that of the stream."""
        self._stream = stream
        self._none = torch.zeros(0, codebooks, dtype=torch.long, device=device)
        self._begun = False

    def push(self, codes: Tensor) -> np.ndarray:
        self._begun = self._begun or codes.shape[1] > 0
        return self._stream.push(codes.T) if codes.shape[1] else np.zeros(0, np.float32)

    def finish(self) -> np.ndarray:
        return self._stream.finish(self._none) if self._begun else np.zeros(0, np.float32)

    def whole(self, codes: Tensor) -> Decoded:
        return self._stream.whole(codes.T)

    @property
    def mel(self) -> np.ndarray | None:
        return self._stream.mel


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


def load_omni_mini(request: LoadRequest) -> OmniMiniSpeech:
    """Load all parts. Raises :class:`CheckpointError`."""
    chosen, device = request.entry, request.device
    request.require_folder(f"{chosen.title} is a folder with a codec in it; choose the folder.")
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
    info = request.info(
        checkpoint=str(folder.weights_path),
        fingerprint=fingerprint(folder.weights_path, request.check),
        sample_rate=SAMPLE_RATE,
        layers=config.transformer.layers,
        branches=2,
        parameters=sum(one.numel() for one in network.parameters()),
        text_front_end=NATURAL_PHONES,
        precisions=offered(device),
    )
    coding = natural_coding(request, codec)
    return OmniMiniSpeech(info, network, coding, OmniMiniFrontEnd(coding, Texts(), layout))
