"""Recipes around the models of natural speech: ``voice-tokenizer``, one code per two latent frames, for a language
model; ``voice-codec``, eight codes per four frames, for a masked model; ``voice-vocoder``, from official mels to the
input of the teacher's decoder.

Tokens hold the content without the speaker (:mod:`paretone.models.minis.speaking`). The networks are those of
:mod:`paretone.models.networks.quantised_mel`, with the 34 numbers of a latent frame in place of mel bands. A jointly
trained phone classifier preserves what words need. Noise on the frames makes the encoder robust to frames that were
read off a recording; an error in the voice's pitch makes it robust to voices known from one recording.

A mel has no phases and no fine structure, and a small network that must invent them buzzes. The vocoder regresses
latent frames, formant scale and level, which a mel determines; a fixed decoder does the rest. Errors in the latents are
also weighted by their effect: the decoder's log magnitudes are compared. Noise on the mels, of varying strength, makes
the network robust to the output of a flow model in few steps; a random gain teaches it the level. Half of the excerpts
lack high frequencies, as recordings do: without them, the network takes a missing top of the spectrum for a longer
vocal tract.
"""

import math
import random
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from paretone.audio.mel import htk_filterbank
from paretone.front_end.phones import PHONES
from paretone.models.files.checkpoints import fingerprint
from paretone.models.minis.natural_decoder import (
    COMPONENTS,
    FORMANT,
    FORMANT_SCALE,
    HOP,
    LATENT,
    LEVEL,
    LEVEL_SCALE,
    MEL_HOP,
    PITCH,
    VOICING,
)
from paretone.models.minis.natural_vocoder import CONFIG_FILE as READER_CONFIG
from paretone.models.minis.natural_vocoder import WEIGHT_FILE as READER_WEIGHTS
from paretone.models.minis.natural_vocoder import MelReader, MelReaderConfig, at_latent_frames, latent_frames
from paretone.models.minis.speaking import NaturalVoice
from paretone.models.networks.quantised_mel import (
    CONFIG_FILE,
    WEIGHT_FILE,
    QuantisedMel,
    ResidualCodec,
    ResidualCodecConfig,
    SpeechTokenizer,
    SpeechTokenizerConfig,
    token_phones,
)
from paretone.observer import may_stop
from paretone.training.batches import Corpus
from paretone.training.learner import LayerMatrices, LearningOptions
from paretone.training.natural_corpus import NaturalClip, voice_frames
from paretone.training.spoken_tokens import frame_phones, voices_of
from tests.tools.recipes.bundled_recipe import (
    CENTS,
    NaturalExcerpts,
    begin_blocks,
    frame_error,
    spectral_error,
    write_network,
)

RESEEDED = 0.1
"""Initial use of a reseeded entry as a share of the mean use: enough to survive, and little enough to move quickly."""


def mel_frame_at(latent_frame: int) -> int:
    """The last mel frame centred at or before ``latent_frame``."""
    return latent_frame * HOP // MEL_HOP


@dataclass(frozen=True)
class CodebookOptions:
    shortened_share: float = 0.25
    """Share of steps that use only the first few codebooks, one to all."""
    decay: float = 0.99
    """Decay of the running means per step."""
    fewest: float = 0.02
    """Entries used less than this share of the mean use are reseeded."""


class MovingCodebooks:
    """Updates ``codebooks`` (codebooks, codes, numbers) in place."""

    def __init__(
        self, codebooks: Tensor, options: CodebookOptions, draw: random.Random, generator: torch.Generator
    ) -> None:
        self._codebooks, self._options, self._draw, self._generator = codebooks, options, draw, generator
        self.uses = torch.zeros(codebooks.shape[:2], device=codebooks.device)
        """Running mean of the tokens per step nearest to each entry."""

    def rounded(self, latents: Tensor) -> tuple[Tensor, Tensor]:
        """``latents`` (B, n, numbers) quantised by this step's codebooks with a straight-through gradient, and the
        summed mean squared distances from the entries. The codebooks are updated."""
        count = len(self._codebooks)
        if self._draw.random() < self._options.shortened_share:
            count = self._draw.randint(1, count)
        with torch.autocast(latents.device.type, enabled=False):
            left, commitment = latents.float().flatten(0, 1), latents.new_zeros((), dtype=torch.float32)
            for number in range(count):
                entries = self.learnt(number, left.detach())
                commitment = commitment + functional.mse_loss(left, entries)
                left = left - entries
            # Straight-through: subtracting the detached residual leaves the sum of entries with the latents' gradient.
            return latents - left.detach().view_as(latents), commitment

    @torch.no_grad()
    def learnt(self, number: int, left: Tensor) -> Tensor:
        """Entries (n, numbers) of one codebook nearest to ``left`` (n, numbers), towards which it then moves."""
        codebook, uses, decay = self._codebooks[number], self.uses[number], self._options.decay
        nearest = torch.cdist(left, codebook).argmin(1)
        entries = codebook[nearest]
        chosen = functional.one_hot(nearest, len(codebook)).to(left.dtype)
        before, now = decay * uses, (1 - decay) * chosen.sum(0)
        moved = (before[:, None] * codebook + (1 - decay) * chosen.T @ left) / (before + now).clamp(min=1e-9)[:, None]
        codebook.copy_(torch.where(now[:, None] > 0, moved, codebook))
        uses.copy_(before + now)
        mean = len(left) / len(codebook)
        idle = uses < self._options.fewest * mean
        drawn = torch.randint(len(left), (len(codebook),), generator=self._generator).to(left.device)
        codebook.copy_(torch.where(idle[:, None], left[drawn], codebook))
        uses.copy_(torch.where(idle, torch.full_like(uses, RESEEDED * mean), uses))
        return entries


TOKENIZER = SpeechTokenizerConfig(bands=LATENT, levels=(8, 8, 8, 8))
CODEC = ResidualCodecConfig(bands=LATENT)


@dataclass(frozen=True)
class NaturalTokenOptions(LearningOptions):
    frames: int = 96
    """Latent frames per training excerpt, a multiple of the stride."""
    batch: int = 24
    largest_noise: float = 0.2
    """Upper limit of the frames' noise, a standard deviation drawn per excerpt."""
    pitch_deviation: float = 0.12
    """Standard deviation of the error in the voice's pitch, in units of a frame's pitch: 52 cents."""
    pitch_weight: float = 2.0
    """Weight of the pitch in voiced frames; all other numbers of a frame have 1."""
    change_weight: float = 0.5
    """Weight of the error in the change from frame to frame."""
    spectrum_weight: float = 0.5
    """Weight of the error in the decoder's log magnitudes."""
    phone_weight: float = 0.2
    commitment_weight: float = 0.25
    """Weight of the squared distance from the entries, which keeps the encoder close to the codebooks."""
    average_decay: float = 0.998
    codebooks: CodebookOptions = field(default_factory=CodebookOptions)


Codec = TypeVar("Codec", bound=QuantisedMel)


class Trained(nn.Module, Generic[Codec]):
    """A codec and its jointly trained classifier."""

    codec: Codec

    def __init__(self, codec: Codec, classifier: nn.Module) -> None:
        super().__init__()
        self.codec, self.classifier = codec, classifier


class NaturalTokens(NaturalExcerpts[NaturalTokenOptions, Trained[Codec]]):
    """Trains a codec; see :class:`paretone.training.session.Recipe`. Subclasses add name and quantisation."""

    layers = LayerMatrices(".pwconv")

    def __init__(
        self,
        corpus: Corpus[NaturalClip],
        device: torch.device,
        options: NaturalTokenOptions,
        codec: Codec,
        numbers: int,
    ) -> None:
        """``numbers``: numbers per token."""
        classifier = nn.Sequential(nn.Linear(numbers, 192), nn.GELU(), nn.Linear(192, len(PHONES)))
        begin_blocks(codec)  # No mel statistics: latent frames are normalised already.
        clips = [clip for clip in corpus.training if len(clip.latents) > options.frames]
        super().__init__(corpus, clips, Trained(codec, classifier), device, options)
        self._voices = voices_of(corpus.training)

    @abstractmethod
    def rounded(self, latents: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """Decoder input in training, with a gradient, and further losses."""

    @property
    def exported(self) -> nn.Module:
        return self.model.codec

    def next_loss(self, progress: float) -> tuple[Tensor, dict[str, Tensor]]:
        options, codec = self.options, self.model.codec
        said, phones = self._batch()
        strength = torch.rand((len(said), 1, 1), generator=self.generator) * options.largest_noise
        noise = strength * torch.randn(said.shape, generator=self.generator)
        wanted = said.to(self.device)
        with options.autocast(self.device):
            numbers, further = self.rounded(codec.latents(wanted + noise.to(self.device)))
            made = decoded(codec, numbers).float()
            scores = self.model.classifier(numbers).float()
            spectrum = spectral_error(self._decoder, made, wanted)
        losses = {
            "frame": frame_error(made, wanted, options.pitch_weight),
            "change": functional.l1_loss(made.diff(dim=1), wanted.diff(dim=1)),
            "spectrum": spectrum,
            "phone": functional.cross_entropy(scores.mT, phones.to(self.device)),
            **further,
        }
        weights = {
            "frame": 1.0,
            "change": options.change_weight,
            "spectrum": options.spectrum_weight,
            "phone": options.phone_weight,
            "commitment": options.commitment_weight,
        }
        total = torch.stack([weights[name] * value for name, value in losses.items()]).sum()
        return total, {name: value.detach() for name, value in losses.items()}

    def _batch(self) -> tuple[Tensor, Tensor]:
        """Content of excerpts (B, n, 34), and the phone of each token (B, n / stride)."""
        excerpts = [self._excerpt(self._draw.choice(self.clips)) for _ in range(self.options.batch)]
        said, phones = zip(*excerpts, strict=True)
        return torch.stack(said), torch.stack(phones)

    def _excerpt(self, clip: NaturalClip) -> tuple[Tensor, Tensor]:
        first = self._draw.randrange(len(clip.latents) - self.options.frames)
        stretch = slice(first, first + self.options.frames)
        voice = self._voices[clip.voice]
        inexact = NaturalVoice(voice.pitch + self._draw.gauss(0, self.options.pitch_deviation), voice.formant)
        said = inexact.said(voice_frames(clip)[stretch])
        by_frame = frame_phones(clip)[stretch]
        return said, torch.from_numpy(token_phones(by_frame, self.model.codec.config.stride))

    @torch.no_grad()
    def validate(self) -> dict[str, float]:
        """On held-out voices: mean absolute errors of the components, of pitch in cents, and of voicing (share of
        frames); the classifier's phone accuracy; and the number of different (first) codes used."""
        codec, classifier = self.average.module.codec, self.average.module.classifier
        stride = codec.config.stride
        sums = dict.fromkeys(("components", "cents", "voicing", "phones"), 0.0)
        used: set[int] = set()
        for clip in self.held_out:
            may_stop()
            frames = voice_frames(clip)
            said = NaturalVoice.of(frames).said(frames)[: len(frames) // stride * stride].to(self.device)
            latents = codec.latents(said[None])
            numbers = codec.quantiser(latents)
            made = decoded(codec, numbers)[0]
            voiced = said[:, VOICING] > 0
            error = (made - said).abs()
            phones = torch.from_numpy(token_phones(frame_phones(clip), stride)).to(self.device)
            sums["components"] += float(error[:, :COMPONENTS].mean())
            sums["cents"] += float(error[voiced, PITCH].sum() / voiced.sum().clamp(min=1)) * CENTS
            sums["voicing"] += float(((made[:, VOICING] > 0) != voiced).float().mean())
            sums["phones"] += float((classifier(numbers)[0].argmax(-1) == phones).float().mean())
            used |= set(codec.quantiser.codes(latents)[0].reshape(len(phones), -1)[:, 0].tolist())
        return {name: total / len(self.held_out) for name, total in sums.items()} | {"codes": float(len(used))}

    def export(self, folder: Path) -> None:
        """Write a folder that :func:`paretone.models.networks.quantised_mel.read_quantised_mel` reads."""
        codec = self.average.module.codec
        write_network(folder, (CONFIG_FILE, WEIGHT_FILE), asdict(codec.config), codec, self.steps)


class NaturalTokenizer(NaturalTokens[SpeechTokenizer]):
    """Trains a language model's tokenizer."""

    name = "voice-tokenizer"

    def __init__(
        self,
        corpus: Corpus[NaturalClip],
        device: torch.device,
        options: NaturalTokenOptions = NaturalTokenOptions(),
        architecture: SpeechTokenizerConfig = TOKENIZER,
    ) -> None:
        torch.manual_seed(options.seed)
        super().__init__(corpus, device, options, SpeechTokenizer(architecture), len(architecture.levels))

    def rounded(self, latents: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        return self.model.codec.quantiser(latents), {}


class NaturalCodec(NaturalTokens[ResidualCodec]):
    """Trains a masked model's codec."""

    name = "voice-codec"

    def __init__(
        self,
        corpus: Corpus[NaturalClip],
        device: torch.device,
        options: NaturalTokenOptions = NaturalTokenOptions(),
        architecture: ResidualCodecConfig = CODEC,
    ) -> None:
        torch.manual_seed(options.seed)
        super().__init__(corpus, device, options, ResidualCodec(architecture), architecture.numbers)
        codebooks = self.model.codec.quantiser.codebooks
        self._codebooks = MovingCodebooks(codebooks, options.codebooks, self._draw, self.generator)

    def rounded(self, latents: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        numbers, commitment = self._codebooks.rounded(latents)
        return numbers, {"commitment": commitment}

    def state(self) -> dict[str, Any]:
        return {**super().state(), "uses": self._codebooks.uses}

    def restore(self, state: Mapping[str, Any]) -> None:
        super().restore(state)
        self._codebooks.uses.copy_(state["uses"])


def decoded(codec: QuantisedMel, numbers: Tensor) -> Tensor:
    """Decode quantised numbers (B, n, numbers) to content frames (B, n · stride, 34)."""
    return codec.decode_numbers(numbers, numbers.new_zeros(len(numbers), codec.config.bands))


SAMPLE_RATE, WINDOW = 24_000, 1_024
FLOOR = math.log(1e-5)
"""Lower limit of mel values."""


def centres(bands: int) -> Tensor:
    """(bands,) hertz at the middle of each band."""
    return htk_filterbank(SAMPLE_RATE, WINDOW, bands).argmax(0) * (SAMPLE_RATE / WINDOW)


def band_limited(mel: Tensor, edge: Tensor, slope: Tensor, depth: Tensor) -> Tensor:
    """Natural-log mel (B, bands, n) of the sounds after low-passes that begin at ``edge`` (B,) hertz and attenuate by
    ``depth`` (B,) nepers from ``slope`` (B,) hertz above it."""
    beyond = (centres(mel.shape[1]).to(mel.device) - edge[:, None]) / slope[:, None]
    return torch.maximum(mel - (depth[:, None] * beyond.clamp(0, 1))[:, :, None], mel.clamp(max=FLOOR))


DECIBELS = LEVEL_SCALE * 20 / math.log(10)
"""Decibels per unit of a voice frame's level."""
VALIDATION_NOISE = 0.3
"""Standard deviation of the noise on the normalised mel in the second validation."""


@dataclass(frozen=True)
class VocoderOptions(LearningOptions):
    frames: int = 128
    """Latent frames per training excerpt."""
    batch: int = 16
    largest_noise: float = 0.3
    """Upper limit of the normalised mel's noise, a standard deviation drawn per excerpt."""
    largest_gain: float = 0.7
    """Limit (±) of the drawn gain's natural logarithm."""
    band_limited: float = 0.5
    """Share of low-passed excerpts."""
    lowest_edge: float = 3_400.0
    highest_edge: float = 11_700.0
    """Range of the low-pass edge in hertz."""
    spectrum_weight: float = 0.5
    """Weight of the mean absolute error in log magnitudes, relative to that in voice frames."""
    pitch_weight: float = 4.0
    """Weight of the pitch in voiced frames; all other numbers of a voice frame have 1."""
    average_decay: float = 0.998


class NaturalVocoder(NaturalExcerpts[VocoderOptions, MelReader]):
    """Trains a mel reader; see :class:`paretone.training.session.Recipe`."""

    name = "voice-vocoder"
    layers = LayerMatrices("backbone.convnext.")

    def __init__(
        self,
        corpus: Corpus[NaturalClip],
        device: torch.device,
        options: VocoderOptions = VocoderOptions(),
        architecture: MelReaderConfig = MelReaderConfig(),
        initial: Path | None = None,
    ) -> None:
        """``initial``: folder of an exported mel reader to start from. Raises :class:`CheckpointError`."""
        torch.manual_seed(options.seed)
        self._initial = fingerprint(initial / READER_WEIGHTS) if initial else "random"
        if initial:
            model = MelReader.load(initial).train().requires_grad_(True)
        else:
            model = MelReader(architecture)
            mels = torch.from_numpy(np.concatenate([clip.mel for clip in corpus.training[::7]]).astype(np.float32))
            model.mel_mean.copy_(mels.mean(0))
            model.mel_scale.copy_(mels.std(0))
            begin_blocks(model)
        clips = [clip for clip in corpus.training if len(clip.latents) > options.frames + 1]
        super().__init__(corpus, clips, model, device, options)

    def describe(self) -> dict[str, Any]:
        return {**super().describe(), "initial_weights": self._initial}

    def next_loss(self, progress: float) -> tuple[Tensor, dict[str, Tensor]]:
        mel, wanted = self._batch()
        with self.options.autocast(self.device):
            made = self.model.out(self.model.backbone(mel)).float()
            spectrum = spectral_error(self._decoder, made, wanted)
        voice = frame_error(made, wanted, self.options.pitch_weight)
        loss = voice + self.options.spectrum_weight * spectrum
        return loss, {"voice": voice.detach(), "spectrum": spectrum.detach()}

    def _batch(self) -> tuple[Tensor, Tensor]:
        """Normalised mels (B, bands, n) as network input, and the target voice frames (B, n, 36)."""
        excerpts = [self._excerpt(self._draw.choice(self.clips)) for _ in range(self.options.batch)]
        mel = torch.stack([one for one, _ in excerpts])
        wanted = torch.stack([one for _, one in excerpts])
        gain, strength = (torch.rand((2, len(mel), 1, 1), generator=self.generator)).unbind()
        gain = (2 * gain - 1) * self.options.largest_gain
        wanted[:, :, LEVEL] = gain[:, :, 0] / LEVEL_SCALE
        mel = self.model.normalised(self._limited(mel + gain).to(self.device).mT).mT
        noise = torch.randn(mel.shape, generator=self.generator) * strength * self.options.largest_noise
        return mel + noise.to(self.device), wanted.to(self.device)

    def _limited(self, mel: Tensor) -> Tensor:
        """Low-pass some of the mels (B, bands, n), with slopes of 100 to 1,000 Hz and depths of 35 to 113 dB."""
        options = self.options
        chosen, edge, slope, depth = torch.rand((4, len(mel)), generator=self.generator).unbind()
        edge = options.lowest_edge * (options.highest_edge / options.lowest_edge) ** edge
        limited = band_limited(mel, edge, slope=100 * 10**slope, depth=4 + 9 * depth)
        return torch.where((chosen < options.band_limited)[:, None, None], limited, mel)

    def _excerpt(self, clip: NaturalClip) -> tuple[Tensor, Tensor]:
        """Random excerpt of ``clip``: its mel at the latent frames (bands, n), and its voice frames (n, 36)."""
        count = self.options.frames
        first = self._draw.randrange(min(len(clip.latents), latent_frames(clip.frames)) - count)
        return mel_at(clip, first, count), voice_frames(clip)[first : first + count]

    @torch.no_grad()
    def validate(self) -> dict[str, float]:
        """On held-out voices: mean absolute errors of the components, with and without noise on the mel, of pitch in
        cents, voicing (share of frames), formant scale, and level in decibels."""
        generator = torch.Generator().manual_seed(7)
        reader = self.average.module
        sums = dict.fromkeys(("components", "components_noised", "cents", "voicing", "formant", "level"), 0.0)
        for clip in self.held_out:
            may_stop()
            count = min(len(clip.latents), latent_frames(clip.frames))
            wanted = voice_frames(clip)[:count].to(self.device)
            mel = mel_at(clip, 0, count)[None].to(self.device)
            made = reader.read(mel)[0]
            noise = torch.randn(mel.shape, generator=generator).to(self.device) * reader.mel_scale[:, None]
            noised = reader.read(mel + VALIDATION_NOISE * noise)[0]
            error = (made - wanted).abs()
            voiced = wanted[:, VOICING] > 0
            sums["components"] += float(error[:, :COMPONENTS].mean())
            sums["components_noised"] += float((noised - wanted)[:, :COMPONENTS].abs().mean())
            sums["cents"] += float(error[voiced, PITCH].sum() / voiced.sum().clamp(min=1)) * CENTS
            sums["voicing"] += float(((made[:, VOICING] > 0) != voiced).float().mean())
            sums["formant"] += float(error[:, FORMANT].mean()) * FORMANT_SCALE
            sums["level"] += float(error[:, LEVEL].mean()) * DECIBELS
        return {name: total / len(self.held_out) for name, total in sums.items()}

    def export(self, folder: Path) -> None:
        """Write the float16 file for :meth:`paretone.models.minis.natural_vocoder.MelReader.load`."""
        reader = self.average.module
        config = {"mel_reader": asdict(reader.config)}
        write_network(folder, (READER_CONFIG, READER_WEIGHTS), config, reader, self.steps)


def mel_at(clip: NaturalClip, first: int, count: int) -> Tensor:
    """The log mel of ``clip`` at ``count`` latent frames from ``first``, (bands, count) float32."""
    begin, end = mel_frame_at(first), mel_frame_at(first + count) + 2
    mel = torch.from_numpy(clip.mel[begin:end].astype(np.float32)).T
    return at_latent_frames(mel[None], first, count, begin)[0]
