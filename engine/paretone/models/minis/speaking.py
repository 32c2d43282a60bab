"""Adapter base of the bundled models with tokens: folder, texts and voices, tokens of natural speech.

A voice of natural speech is a pitch and a formant scale; the components of a latent frame are independent of it. Tokens
encode the content; decoding adds the voice.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np
import torch
from torch import Tensor

from paretone.audio.mel import MelFrontEnd
from paretone.audio.resampling import resample
from paretone.errors import CheckpointError
from paretone.front_end.alignment import Aligner, alignment_notes
from paretone.front_end.phones import PhoneVocabulary, TimedPhone, labels, last_sound
from paretone.front_end.pronunciations import HowToRead
from paretone.front_end.reading import NaturalReader
from paretone.last_used import VOICES, LastUsed
from paretone.models.base import ModelInfo, Voice
from paretone.models.f5.front_end import Prompt, PromptReader
from paretone.models.families.passages import Decoded, Passages
from paretone.models.files.checkpoints import fingerprint
from paretone.models.loading import LoadRequest
from paretone.models.minis.natural_decoder import (
    FORMANT,
    FORMANT_MEAN,
    FORMANT_SCALE,
    HOP,
    LATENT,
    PITCH,
    SAMPLE_RATE,
    VOICE,
    VOICING,
    NaturalDecoder,
)
from paretone.models.minis.natural_vocoder import LatentVocoder, MelReader, StreamedNatural
from paretone.models.networks.quantised_mel import QuantisedMel, StreamedCodec
from paretone.observer import Check
from paretone.paths import resource

WEIGHTS, CONFIG, LAYOUT_FILE = "model.safetensors", "config.json", "layout.json"
NATURAL_PHONES = "natural phones"


@dataclass(frozen=True)
class MiniFolder:
    """Folder of a bundled model. Reading raises :class:`CheckpointError`, and calls ``check``, which may cancel."""

    root: Path
    check: Check = lambda: None

    @property
    def weights_path(self) -> Path:
        return self.root / WEIGHTS


def phones_of_prompt(read: Prompt, reader: Aligner) -> tuple[tuple[TimedPhone, ...], tuple[str, ...]]:
    """Phones that come with the recording, or else aligned ones, with notes for the user. Raises
    :class:`paretone.errors.AudioError` and :class:`paretone.errors.TextError`."""
    if read.voice.phones:
        return read.voice.phones, read.notes
    heard = reader.heard(read.samples.numpy(), SAMPLE_RATE, read.voice.transcript)
    return heard.phones, (*read.notes, *alignment_notes(heard))


@dataclass(frozen=True)
class NaturalVoice:
    """Properties of a speaker, in units of a voice frame."""

    pitch: float
    """Mean of the voiced frames."""
    formant: float

    @classmethod
    def of(cls, frames: Tensor) -> NaturalVoice:
        """The voice of voice frames (n, 36); the pitch of entirely unvoiced frames is the corpus's mean."""
        voiced = frames[:, VOICING] > 0
        pitch = float(frames[voiced, PITCH].mean()) if voiced.any() else 0.0
        return cls(pitch, float(frames[:, FORMANT].median()))

    def said(self, frames: Tensor) -> Tensor:
        """Remove the speaker's pitch: voice frames (…, n, 36) to (…, n, 34)."""
        said = frames[..., :LATENT].clone()
        said[..., PITCH] -= self.pitch
        return said

    def frames(self, said: Tensor) -> Tensor:
        """Add the speaker's pitch: (…, n, 34) to voice frames (…, n, 36) at the mean level."""
        frames = torch.cat([said, said.new_zeros(*said.shape[:-1], VOICE - LATENT)], dim=-1)
        frames[..., PITCH] += self.pitch
        frames[..., FORMANT] = self.formant
        return frames


Codec = TypeVar("Codec", bound=QuantisedMel)
NOBODY = NaturalVoice(0.0, 0.0)


class NaturalCoding(Generic[Codec]):
    """Tokens of a bundled model: the content, without level and voice, of voice frames (n, 36) read from a mel."""

    def __init__(self, codec: Codec, vocoder: LatentVocoder) -> None:
        self.codec, self._vocoder, self._mel = codec, vocoder, MelFrontEnd()

    @property
    def device(self) -> torch.device:
        return self.codec.mel_mean.device

    @property
    def stride(self) -> int:
        return self.codec.config.stride

    @property
    def token_seconds(self) -> float:
        return HOP * self.stride / SAMPLE_RATE

    @torch.inference_mode()
    def frames(self, mel: Tensor) -> Tensor:
        """Log mel (1, mel frames, 100) of a recording to frames (n, 36), on the codec's device."""
        return self._vocoder.reader(mel.mT.float().to(self.device))[0]

    def codes(self, frames: Tensor, who: NaturalVoice) -> Tensor:
        """Frames (n, 36) spoken by ``who`` to codes (n // stride, …), int64; an incomplete token is dropped."""
        return self.codec.encode(who.said(frames)[None])[0]

    def stream(self, who: NaturalVoice) -> StreamedSpeech:
        """Decoder for the codes of a passage, in the voice ``who``."""
        return StreamedSpeech(self.codec, self._vocoder.decoder, who, self._mel)


class StreamedSpeech:
    """Decoder for the codes of one passage, at the level of a prompt; pieces equal decoding at once."""

    def __init__(self, codec: QuantisedMel, decoder: NaturalDecoder, who: NaturalVoice, mel: MelFrontEnd) -> None:
        # The codec decodes in no voice; ``who`` is added afterwards.
        self._codec = StreamedCodec(codec, torch.zeros_like(codec.mel_mean))
        self._decoder, self._who, self._mel = decoder, who, mel
        self._audio = StreamedNatural(decoder)
        self._heard: list[Tensor] = []

    @torch.inference_mode()
    def push(self, codes: Tensor, last: bool = False) -> np.ndarray:
        """Next tokens' codes (n, …), with ``last`` the last ones, possibly none, to the audio that is now final, (m,)
        float32."""
        self._heard.append(self._audio.push(self._who.frames(self._codec.push(codes, last)), last).cpu())
        return self._heard[-1].numpy()

    @torch.inference_mode()
    def whole(self, codes: Tensor) -> Decoded:
        """Decode all codes (n, …) of a passage at once, independently of the other methods."""
        if not len(codes):
            return Decoded(np.zeros(0, np.float32))
        samples = self._decoder.decode(self._who.frames(self._codec.whole(codes))).cpu()
        return Decoded(samples.numpy(), self._mel(samples)[0].numpy())

    @property
    def mel(self) -> np.ndarray | None:
        """Natural-log mel (frames, bands) of the audio so far."""
        samples = torch.cat(self._heard) if self._heard else torch.zeros(0)
        return self._mel(samples)[0].numpy() if len(samples) else None


def natural_coding(request: LoadRequest, codec: Codec) -> NaturalCoding[Codec]:
    """Coding of a model with this codec. Raises :class:`CheckpointError` unless codec and vocoder are natural."""
    if codec.config.bands != LATENT:
        raise CheckpointError(
            f"The model in {request.place} reads the phones of natural speech, but its {codec.title} is not of natural "
            "speech: they do not belong together. Restore the model folder."
        )
    return NaturalCoding(codec, request.natural_vocoder())


@dataclass(frozen=True)
class MiniPrompt:
    phones: Any = field(repr=False)
    """Ids (n,), one per token."""
    codes: Any = field(repr=False)
    who: NaturalVoice = field(repr=False)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class MiniPassage:
    text: str
    phones: Any = field(repr=False)
    """Ids (n,), one per token to generate."""
    end: int = 0
    """Sample at which its last sound ends."""
    timed: tuple[TimedPhone, ...] = field(default=(), repr=False)

    @property
    def expected(self) -> int:
        return max(len(self.phones), 1)

    frames = expected


class MiniFrontEnd(ABC, Generic[Codec]):
    """Prepares voices and texts, and caches the last voices. A model defines the form of its phones and codes."""

    def __init__(self, coding: NaturalCoding[Codec], vocabulary: PhoneVocabulary) -> None:
        self._coding, self._vocabulary = coding, vocabulary
        self._reader = NaturalReader()
        self._read_prompt = PromptReader(vocabulary.index)
        self._prompts: LastUsed[MiniPrompt] = LastUsed(VOICES)

    @abstractmethod
    def _ids(self, by_frame: np.ndarray) -> Any:
        """Network ids for the phones of voice frames, a multiple of the stride."""

    @abstractmethod
    def _codes(self, codes: Tensor) -> Any:
        """Network form of codes (n, …)."""

    def passages(self, text: str, how: HowToRead) -> Passages[MiniPassage]:
        """See :meth:`paretone.front_end.reading.NaturalReader.pieces`. Raises :class:`paretone.errors.TextError`."""
        pieces, notes = self._reader.pieces(text, how)
        passages = (
            MiniPassage(one.text, self._phones(one.phones), round(last_sound(one.phones) * SAMPLE_RATE), one.phones)
            for one in pieces
        )
        return Passages(tuple(passages), notes)

    def prompt(self, voice: Voice) -> MiniPrompt:
        """Prepare ``voice``. Raises :class:`paretone.errors.AudioError` and :class:`paretone.errors.TextError`."""
        read = self._read_prompt(voice)
        return self._prompts.of(read, lambda: self._encoded(read))

    @torch.inference_mode()
    def _encoded(self, read: Prompt) -> MiniPrompt:
        phones, notes = phones_of_prompt(read, self._reader)
        frames = self._coding.frames(read.mel[:, : read.frames])
        who = NaturalVoice.of(frames)
        codes = self._coding.codes(frames, who)
        return MiniPrompt(self._phones(phones, len(codes)), self._codes(codes), who, notes)

    def _phones(self, phones: Sequence[TimedPhone], tokens: int | None = None) -> Any:
        """Ids of ``phones`` over a number of tokens, by default as many as they fill completely: the networks were
        never trained on a token in which speech ends, and render one in which silence ends as a burst."""
        stride = self._coding.stride
        if tokens is None:
            tokens = max(round(phones[-1][2] * SAMPLE_RATE / HOP) // stride, 1)
        return self._ids(labels(phones, tokens * stride, self._vocabulary, SAMPLE_RATE, HOP))


class MiniSpeech:
    coding: NaturalCoding[Any]
    front_end: MiniFrontEnd[Any]

    @torch.inference_mode()
    def copied(self, samples: np.ndarray, voice: Voice) -> np.ndarray:
        """Resynthesise speech (n,) of ``voice`` from its tokens, float32 at the model's rate."""
        coding, who = self.coding, self.front_end.prompt(voice).who
        codes = coding.codes(coding.frames(MelFrontEnd()(torch.from_numpy(samples))), who)
        return coding.stream(who).whole(codes).samples

    def ready_voice(self, voice: Voice, *more: Any) -> None:
        self.front_end.prompt(voice)


def mini_info(request: LoadRequest, weights: Path, **found: Any) -> ModelInfo:
    return request.info(
        checkpoint=str(weights),
        fingerprint=fingerprint(weights, request.check),
        sample_rate=SAMPLE_RATE,
        text_front_end=NATURAL_PHONES,
        **found,
    )


class VoiceReader:
    """The bundled mel reader, for recordings. Raises :class:`CheckpointError` if it is damaged."""

    def __init__(self) -> None:
        self._reader = MelReader.load(resource("models", "natural-vocoder"))
        self._mel = MelFrontEnd()

    @torch.inference_mode()
    def formant_scale(self, samples: np.ndarray, rate: int) -> float:
        """Median formant scale of mono ``samples`` (n,); 1 is the teacher's own voice, less a longer vocal tract.
        Accurate to 0.002 on clean speech of the teacher."""
        heard = torch.from_numpy(resample(samples, rate, SAMPLE_RATE))
        frames = self._reader(self._mel(heard[None]).mT)[0]
        return NaturalVoice.of(frames).formant * FORMANT_SCALE + FORMANT_MEAN
