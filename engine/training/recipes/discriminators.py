"""Small discriminators for the adversarial phase of the vocoder.

Period discriminators see the waveform folded to a matrix (Kong et al., "HiFi-GAN", arXiv 2010.05646, section 2.3),
resolution discriminators complex spectrograms, phases included (Défossez et al., "EnCodec", arXiv 2210.13438, section
3.4). Both are far narrower than there: the corpus is two synthetic voices, and training runs on a processor.

Two of the resolutions have hops much shorter than the vocoder's 256 samples: a vocoder that has learnt magnitudes only
gives one pulse per frame, a buzz at 94 Hz, which such hops show.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.parametrizations import weight_norm

PERIODS = (3, 7)
RESOLUTIONS = ((2048, 512), (1024, 128), (512, 64))
"""Window and hop in samples."""
HIGHEST_SHARE = 2 / 3
"""Only this share of the spectrum is judged: the corpus ends at 8 kHz of 12."""
SLOPE = 0.1
GAIN = 8.0
"""Brings speech at its usual level to about one, where the layers' initial weights expect it."""

Judgement = tuple[Tensor, list[Tensor]]
"""Scores (positive: real) and the feature maps on the way to them."""


class PeriodDiscriminator(nn.Module):
    """Looks at every ``period``-th sample."""

    def __init__(self, period: int, channels: tuple[int, ...] = (16, 48, 96, 128)) -> None:
        super().__init__()
        self.period = period
        widths = (1, *channels)
        self.layers = nn.ModuleList(
            weight_norm(nn.Conv2d(narrow, wide, (5, 1), (3, 1), padding=(2, 0)))
            for narrow, wide in zip(widths, channels, strict=False)
        )
        self.score = weight_norm(nn.Conv2d(channels[-1], 1, (3, 1), padding=(1, 0)))
        self.apply(_initialise)

    def forward(self, samples: Tensor) -> Judgement:
        """(B, samples)."""
        missing = -samples.shape[-1] % self.period
        x = functional.pad(GAIN * samples, (0, missing)).unflatten(-1, (-1, self.period)).unsqueeze(1)
        return _through(self.layers, self.score, x)


class ResolutionDiscriminator(nn.Module):
    """Looks at real part, imaginary part and log magnitude of one short-time Fourier transform."""

    window: Tensor

    def __init__(self, size: int, hop: int, channels: tuple[int, ...] = (16, 24, 32, 32)) -> None:
        super().__init__()
        self.size, self.hop = size, hop
        self.bins = int((size // 2 + 1) * HIGHEST_SHARE)
        self.register_buffer("window", torch.hann_window(size), persistent=False)
        widths = (3, *channels)
        self.layers = nn.ModuleList(
            weight_norm(nn.Conv2d(narrow, wide, (5, 3), (2 if index else 3, 1), padding=(2, 1)))
            for index, (narrow, wide) in enumerate(zip(widths, channels, strict=False))
        )
        self.score = weight_norm(nn.Conv2d(channels[-1], 1, (3, 3), padding=1))
        self.apply(_initialise)

    def forward(self, samples: Tensor) -> Judgement:
        """(B, samples)."""
        spectrum = torch.stft(
            GAIN * samples, self.size, self.hop, window=self.window, normalized=True, return_complex=True
        )
        parts = torch.view_as_real(spectrum[:, : self.bins]).permute(0, 3, 1, 2)
        magnitude = parts.square().sum(1, keepdim=True).add(1e-5).sqrt()
        # Speech spans many orders of magnitude. Both parts are divided by one root, which brings weak upper harmonics
        # into the judge's view and leaves the phase as it is.
        return _through(self.layers, self.score, torch.cat([parts / magnitude.sqrt(), magnitude.log()], dim=1))


def _through(layers: nn.ModuleList, score: nn.Module, x: Tensor) -> Judgement:
    features = []
    for layer in layers:
        x = functional.leaky_relu(layer(x), SLOPE)
        features.append(x)
    return score(x), features


def _initialise(module: nn.Module) -> None:
    """Weights under which activations keep their size; torch's default lets them fade, and the judges learn late."""
    if isinstance(module, nn.Conv2d):
        weight = torch.empty_like(module.weight)
        nn.init.kaiming_normal_(weight, SLOPE)
        module.weight = weight
        if module.bias is not None:
            nn.init.zeros_(module.bias)


class Discriminators(nn.Module):
    """All of them."""

    def __init__(self) -> None:
        super().__init__()
        self.judges = nn.ModuleList(
            [PeriodDiscriminator(period) for period in PERIODS]
            + [ResolutionDiscriminator(size, hop) for size, hop in RESOLUTIONS]
        )

    def forward(self, samples: Tensor) -> list[Judgement]:
        """(B, samples) to one judgement a discriminator."""
        return [judge(samples) for judge in self.judges]


def discriminator_loss(of_real: list[Judgement], of_made: list[Judgement]) -> Tensor:
    """Hinge loss, mean over the judges."""
    losses = [
        functional.relu(1 - real.float()).mean() + functional.relu(1 + made.float()).mean()
        for (real, _), (made, _) in zip(of_real, of_made, strict=True)
    ]
    return torch.stack(losses).mean()


def generator_loss(of_made: list[Judgement]) -> Tensor:
    """Adversarial loss of the generator, mean over the discriminators."""
    return torch.stack([functional.relu(1 - made.float()).mean() for made, _ in of_made]).mean()


def feature_matching_loss(of_real: list[Judgement], of_made: list[Judgement]) -> Tensor:
    """Mean absolute difference of the feature maps, each relative to the size of the real one, mean over all maps."""
    losses = [
        functional.l1_loss(theirs.float(), ours.float()) / ours.float().abs().mean().clamp(min=1e-3)
        for (_, real), (_, made) in zip(of_real, of_made, strict=True)
        for ours, theirs in zip(real, made, strict=True)
    ]
    return torch.stack(losses).mean()
