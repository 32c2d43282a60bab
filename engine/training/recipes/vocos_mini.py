"""The recipe of the bundled vocoder, ``vocos-mini``, in two phases.

First spectral losses alone: log-mel L1 and a multi-resolution short-time Fourier transform loss. They constrain phases
little and leave a buzz above 2 kHz, so the second phase adds small discriminators and feature matching (Siuzdak,
"Vocos", arXiv 2306.00814, section 3.3).

Half of the excerpts are rounded to 16 bits first: above 8 kHz the corpus is silent (log mel -11.5), and the
quantisation noise of 16-bit prompts lifts these bands by five.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
import yaml
from torch import Tensor
from torch.nn import functional

from engine.audio.mel import MelFrontEnd
from engine.models.f5.config import HOP, SAMPLE_RATE
from engine.models.networks.vocos import Vocos, VocosConfig
from engine.training.corpora import Clip
from engine.training.corpus import Corpus
from engine.training.draws import draw_state, restore_draw
from engine.training.recipe import require_finite
from engine.training.recipes.discriminators import (
    Discriminators,
    Judgement,
    discriminator_loss,
    feature_matching_loss,
    generator_loss,
)
from engine.training.schedule import AveragedModel, Rated

ARCHITECTURE = VocosConfig(width=256, inner_width=640, layers=5)
RESOLUTIONS = ((2048, 512), (1024, 256), (512, 128), (256, 64), (128, 32))
"""Window and hop of the spectral loss: long windows see harmonics, short ones see single pulses of the voice."""
HIGHEST_SHARE = 2 / 3 + 0.01
"""Share of the spectrum that the spectral loss looks at: the corpus ends at 8 kHz of 12."""
UPPER = (2_000.0, 8_000.0)
"""Hertz between which a buzz shows first."""
AUDIBLE = -6.0
"""Log mel under which nothing is compared: the level of 16-bit quantisation noise."""


@dataclass(frozen=True)
class VocosOptions(Rated):
    """Options of the recipe."""

    frames: int = 48
    """Mel frames of one training excerpt."""
    batch: int = 8
    learning_rate: float = 6e-4
    adversarial_from: float = 0.2
    """Share of the budget after which the discriminators join; most of what follows is spent on them."""
    judges_rate: float = 1e-3
    """Learning rate of the discriminators."""
    mel_weight: float = 8.0
    spectrum_weight: float = 1.0
    """Weights relative to the adversarial loss in the second phase. The mel is the vocoder's input, which it has to
    keep; but of all waveforms with this mel, a distance between spectra prefers one that is smooth where speech is
    noisy."""
    matching_weight: float = 1.0
    half_precision: bool = False
    """Run the discriminators in bfloat16: faster on processors and GPUs that have units for it, slower elsewhere."""
    average_decay: float = 0.998
    seed: int = 1


class VocosMini:
    """Trains a small Vocos; see :class:`engine.training.recipe.Recipe`."""

    name = "vocos-mini"

    def __init__(
        self,
        corpus: Corpus,
        device: torch.device,
        options: VocosOptions = VocosOptions(),
        initial: Path | None = None,
        architecture: VocosConfig = ARCHITECTURE,
    ) -> None:
        self.device, self.options, self.initial = device, options, initial
        self._clips = [clip for clip in corpus.training if clip.frames > options.frames]
        self._held_out = corpus.held_out[::4]
        self._seconds = corpus.seconds
        torch.manual_seed(options.seed)
        self.model = Vocos.load(initial) if initial else Vocos(architecture)
        self.model.requires_grad_(True).train().to(device)
        self.judges = Discriminators().to(device)
        self.average = AveragedModel(self.model, options.average_decay)
        settings: dict[str, Any] = {"betas": (0.8, 0.95), "weight_decay": 0.01, "fused": True}
        self._optimiser = torch.optim.AdamW(self.model.parameters(), lr=options.learning_rate, **settings)
        self._judges_optimiser = torch.optim.AdamW(self.judges.parameters(), lr=options.judges_rate, **settings)
        self._draw = random.Random(options.seed)
        self._mel = MelFrontEnd()

    def describe(self) -> dict[str, Any]:
        return {
            "corpus": f"flite, {len(self._clips)} clips, {self._seconds / 3600:.2f} h",
            "parameters": sum(one.numel() for one in self.model.parameters()),
            "initial_weights": str(self.initial.name) if self.initial else "random",
            "options": asdict(self.options),
        }

    def _batch(self) -> Tensor:
        """(B, frames · hop) excerpts at different levels."""
        excerpts = []
        for _ in range(self.options.batch):
            clip = self._draw.choice(self._clips)
            start = self._draw.randrange(clip.frames - self.options.frames) * HOP
            excerpt = torch.from_numpy(clip.samples[start : start + self.options.frames * HOP].copy())
            excerpt *= self._draw.uniform(0.5, 1.3)
            if self._draw.random() < 0.5:
                excerpt = (excerpt * 32767).round() / 32767
            excerpts.append(excerpt)
        return torch.stack(excerpts).to(self.device)

    def step(self, number: int, progress: float) -> dict[str, float]:
        options = self.options
        adversarial = progress >= options.adversarial_from
        rate = options.learning_rate * options.scale(number, progress, warm_up=50, hold=0.3)
        self._optimiser.param_groups[0]["lr"] = rate
        real = self._batch()
        mel = self._mel(real)
        made = self.model.head(self.model.backbone(mel.transpose(1, 2)))
        losses = {"mel": mel_distance(self._mel(made), mel), "spectrum": spectral_loss(made, real)}
        total = losses["mel"] + losses["spectrum"]
        if adversarial:
            losses["judges"] = self._train_judges(real, made.detach(), number)
            self.judges.requires_grad_(False)
            with torch.no_grad():
                of_real = self._judged(real)
            of_made = self._judged(made)
            losses["fooling"] = generator_loss(of_made)
            losses["matching"] = feature_matching_loss(of_real, of_made)
            self.judges.requires_grad_(True)
            total = options.mel_weight * losses["mel"] + options.spectrum_weight * losses["spectrum"]
            total = total + losses["fooling"] + options.matching_weight * losses["matching"]
        self._optimiser.zero_grad(set_to_none=True)
        total.backward()
        norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), 10.0 if adversarial else 1.0)
        require_finite(float(total.detach() + norm), "loss or its gradient", number)
        self._optimiser.step()
        self.average.update(self.model, number)
        return {name: float(value.detach()) for name, value in losses.items()}

    def _judged(self, samples: Tensor) -> list[Judgement]:
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.options.half_precision):
            return self.judges(samples)

    def _train_judges(self, real: Tensor, made: Tensor, number: int) -> Tensor:
        loss = discriminator_loss(self._judged(real), self._judged(made))
        self._judges_optimiser.zero_grad(set_to_none=True)
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(self.judges.parameters(), 10.0)
        require_finite(float(loss.detach() + norm), "discriminators' loss or its gradient", number)
        self._judges_optimiser.step()
        return loss.detach()

    @torch.no_grad()
    def validate(self) -> dict[str, float]:
        return copy_synthesis_distances(self.average.module, self._held_out, self.device)

    def state(self) -> dict[str, Any]:
        return {
            "model": self.model.state_dict(),
            "average": self.average.module.state_dict(),
            "judges": self.judges.state_dict(),
            "optimiser": self._optimiser.state_dict(),
            "judges_optimiser": self._judges_optimiser.state_dict(),
            "draw": draw_state(self._draw),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        self.model.load_state_dict(state["model"])
        self.average.module.load_state_dict(state["average"])
        self.judges.load_state_dict(state["judges"])
        self._optimiser.load_state_dict(state["optimiser"])
        self._judges_optimiser.load_state_dict(state["judges_optimiser"])
        restore_draw(self._draw, state["draw"])

    def export(self, folder: Path) -> None:
        """``config.yaml`` and ``pytorch_model.bin`` as ``charactr/vocos-mel-24khz`` has them, feature extractor
        included."""
        folder.mkdir(parents=True, exist_ok=True)
        config = self.model.config
        framing = {"n_fft": config.window, "hop_length": config.hop, "padding": "center"}
        sizes = {"dim": config.width, "intermediate_dim": config.inner_width, "num_layers": config.layers}
        features = {"sample_rate": config.sample_rate, "n_mels": config.bands, **framing}
        parts = {
            "feature_extractor": ("vocos.feature_extractors.MelSpectrogramFeatures", features),
            "backbone": ("vocos.models.VocosBackbone", {"input_channels": config.bands, **sizes}),
            "head": ("vocos.heads.ISTFTHead", {"dim": config.width, **framing}),
        }
        content = {part: {"class_path": path, "init_args": arguments} for part, (path, arguments) in parts.items()}
        (folder / "config.yaml").write_text(yaml.safe_dump(content, sort_keys=False), encoding="utf-8")
        weights = {
            "feature_extractor.mel_spec.spectrogram.window": torch.hann_window(config.window),
            "feature_extractor.mel_spec.mel_scale.fb": self._mel.filterbank().clone(),
            **{name: value.cpu() for name, value in self.average.module.state_dict().items()},
        }
        unfinished = folder / "pytorch_model.bin.part"
        torch.save(weights, unfinished)
        unfinished.replace(folder / "pytorch_model.bin")


def _magnitudes(samples: Tensor, size: int, hop: int, highest_share: float = HIGHEST_SHARE) -> Tensor:
    """(B, bins, frames) magnitudes; a full-scale sine is about one half. Smooth at zero, so that gradients are
    finite."""
    window = torch.hann_window(size, device=samples.device)
    spectrum = torch.stft(samples, size, hop, window=window, return_complex=True)[
        :, : int(size / 2 * highest_share) + 1
    ]
    return (torch.view_as_real(spectrum).square().sum(-1) + 1e-8).sqrt() * (2 / size)


def mel_distance(made: Tensor, real: Tensor) -> Tensor:
    """Mean absolute difference of log mels, as far as it can be heard."""
    return functional.l1_loss(made.clamp(min=AUDIBLE), real.clamp(min=AUDIBLE))


def spectral_loss(made: Tensor, real: Tensor) -> Tensor:
    """Mean over :data:`RESOLUTIONS` of the L1 distance of log magnitudes and the relative L1 distance of magnitudes."""
    losses = []
    for size, hop in RESOLUTIONS:
        ours, theirs = _magnitudes(made, size, hop), _magnitudes(real, size, hop)
        # A floor 80 dB below full scale: what is quieter is inaudible under speech.
        logarithmic = functional.l1_loss((ours + 1e-4).log(), (theirs + 1e-4).log())
        losses.append(logarithmic + functional.l1_loss(ours, theirs) / (theirs.mean() + 1e-5))
    return torch.stack(losses).mean()


@torch.no_grad()
def buzz(samples: Tensor) -> float:
    """Periodicity of (1, n) above 2 kHz at exactly one hop, −1 to 1.

    It is the mean normalised autocorrelation at that lag in windows of 2048 samples. A vocoder that gives every frame
    the same phases makes a pulse a frame, which is heard as a metallic tone at 94 Hz and its harmonics; speech has no
    reason to repeat at this lag.
    """
    power = _magnitudes(samples, 2048, 512).square()
    power[:, : _bin(UPPER[0])] = 0
    correlation = torch.fft.irfft(power, n=2048, dim=1)
    loudness = correlation[:, 0]
    audible = loudness > 1e-2 * loudness.max()
    return float((correlation[:, HOP] / loudness.clamp(min=1e-12))[audible].mean())


def _bin(hertz: float) -> int:
    return round(hertz * 2048 / SAMPLE_RATE)


@torch.no_grad()
def copy_synthesis_distances(vocoder: Vocos, clips: tuple[Clip, ...], device: torch.device) -> dict[str, float]:
    """Distances of decoded clips from the clips themselves, mean over the clips: log-mel L1, the spectral loss, the L1
    distance of log magnitudes between 2 and 8 kHz, and by how much the :func:`buzz` is above that of the clips."""
    front_end = MelFrontEnd()
    sums = {"mel": 0.0, "spectrum": 0.0, "upper_harmonics": 0.0, "buzz": 0.0}
    for clip in clips:
        real = torch.from_numpy(clip.samples.copy())[None].to(device)
        mel = front_end(real)
        made = vocoder.decode(mel.transpose(1, 2))[:, : real.shape[1]]
        sums["mel"] += float(mel_distance(front_end(made), mel))
        sums["spectrum"] += float(spectral_loss(made, real))
        sums["upper_harmonics"] += float(functional.l1_loss(_upper_magnitudes(made), _upper_magnitudes(real)))
        sums["buzz"] += buzz(made) - buzz(real)
    return {name: total / len(clips) for name, total in sums.items()}


def _upper_magnitudes(samples: Tensor) -> Tensor:
    return _magnitudes(samples, 2048, 512)[:, _bin(UPPER[0]) : _bin(UPPER[1])].add(1e-4).log()
