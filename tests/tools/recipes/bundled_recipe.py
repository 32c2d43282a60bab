"""Base classes of the recipes for bundled models: those that learn from batches of clips and of pairs, and those that
learn from excerpts of natural speech, with errors also judged through the decoder. See
:class:`paretone.training.session.Recipe`."""

import json
import math
import random
import shutil
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np
import torch
from safetensors.torch import save
from torch import Tensor, nn

from paretone.files import write_atomically
from paretone.models.minis.natural_decoder import PITCH, PITCH_SCALE, VOICING, NaturalDecoder
from paretone.models.minis.speaking import CONFIG, LAYOUT_FILE, WEIGHTS
from paretone.models.networks.causal import CausalConfig, TransformerLayer
from paretone.models.networks.diffusion import DiffusionTransformer
from paretone.observer import may_stop
from paretone.training.batches import BatchQueue, Corpus, QueuedClip, draw_state, restore_draw
from paretone.training.learner import LayerMatrices, Learner, LearningOptions, LearningRecipe, Network
from paretone.training.natural_corpus import NaturalClip

VALIDATION_TIMES = (0.05, 0.40)
"""Includes a time close to the noise: there a mumbling model has a high loss, while its mean loss looks fine."""

Batch = TypeVar("Batch")


def errors_by_time(
    batches: Iterable[Batch], error: Callable[[Batch, float, torch.Generator], Tensor]
) -> dict[str, float]:
    """Mean ``error`` of ``batches`` at each of :data:`VALIDATION_TIMES`, with fixed noise."""
    figures = {}
    for time in VALIDATION_TIMES:
        generator = torch.Generator().manual_seed(7)
        errors = []
        for batch in batches:
            may_stop()
            errors.append(float(error(batch, time, generator)))
        figures[f"t={time:.2f}"] = float(np.mean(errors))
    return figures


@torch.no_grad()
def begin_blocks(model: nn.Module) -> None:
    """Initialise ConvNeXt blocks close to the identity."""
    for name, parameter in model.named_parameters():
        if name.endswith("gamma"):
            parameter.fill_(0.2)


@torch.no_grad()
def open_gates(model: DiffusionTransformer) -> None:
    """AdaLN at zero, as in the official code, but with half-open gates."""
    for block in model.blocks:
        linear = block.norm.linear
        linear.weight.zero_()
        shift, scale, gate, shift_forward, scale_forward, gate_forward = linear.bias.chunk(6)
        for part in (shift, scale, shift_forward, scale_forward):
            part.zero_()
        for part in (gate, gate_forward):
            part.fill_(0.5)
    model.final_norm.linear.weight.zero_()
    model.final_norm.linear.bias.zero_()


@torch.no_grad()
def begin_as_nothing(layers: Iterable[TransformerLayer]) -> None:
    """Zero output projections: each layer starts as the identity."""
    for layer in layers:
        layer.self_attn.o_proj.weight.zero_()
        layer.mlp.down_proj.weight.zero_()


@dataclass(frozen=True)
class BundledOptions(LearningOptions):
    frames: int = 1_800
    """Model frames per step, padding included."""


AnyOptions = TypeVar("AnyOptions", bound=LearningOptions)
AnyClips = TypeVar("AnyClips")


class CorpusRecipe(LearningRecipe[AnyOptions, Network], Generic[AnyOptions, AnyClips, Network]):
    """Trains ``model`` from random weights on ``clips``, the model's view of ``corpus``."""

    name: ClassVar[str]
    layers: ClassVar[LayerMatrices]

    def __init__(
        self, corpus: Corpus[Any], clips: Sequence[AnyClips], model: Network, device: torch.device, options: AnyOptions
    ) -> None:
        super().__init__(Learner.by(model.to(device), self.layers, options), device, options)
        self.corpus, self.clips = corpus, clips
        self.generator = torch.Generator().manual_seed(options.seed)
        """Draws on the CPU: a seed gives the same run on every device."""

    @property
    def exported(self) -> nn.Module:
        """The part of the model that is exported."""
        return self.model

    def describe(self) -> dict[str, Any]:
        return {
            "corpus": f"{self.corpus.source}, {len(self.clips)} clips, {self.corpus.seconds / 3600:.2f} h",
            "parameters": sum(one.numel() for one in self.exported.parameters()),
            "initial_weights": "random",
            "options": asdict(self.options),
        }

    def state(self) -> dict[str, Any]:
        return {**super().state(), "generator": self.generator.get_state()}

    def restore(self, state: Mapping[str, Any]) -> None:
        super().restore(state)
        self.generator.set_state(state["generator"])


Options = TypeVar("Options", bound=BundledOptions)
Clips = TypeVar("Clips", bound=QueuedClip)


class BundledRecipe(CorpusRecipe[Options, Clips, Network], Generic[Options, Clips, Network]):
    term: ClassVar[str]
    """Name of the loss in the log."""

    def __init__(
        self, corpus: Corpus[Any], clips: Sequence[Clips], model: Network, device: torch.device, options: Options
    ) -> None:
        super().__init__(corpus, clips, model, device, options)
        self._queue = BatchQueue(clips, options.frames, options.joined_share, options.seed, self.prompt_frames)
        self.progress = 0.0
        """Spent share of the budget."""

    @property
    def prompt_frames(self) -> int | None:
        """Upper limit of the frames counted for the first clip of a pair when batches are packed."""
        return None

    @abstractmethod
    def loss(self, items: list[list[Clips]]) -> Tensor:
        """Loss of a batch whose items are one clip, or two of one voice."""

    def next_loss(self, progress: float) -> tuple[Tensor, dict[str, Tensor]]:
        self.progress = progress
        loss = self.loss([[self.clips[one] for one in item] for item in self._queue.next()])
        return loss, {self.term: loss.detach()}

    def autocast(self) -> torch.autocast:
        return self.options.autocast(self.device)

    def state(self) -> dict[str, Any]:
        return {**super().state(), "queue": self._queue.state()}

    def restore(self, state: Mapping[str, Any]) -> None:
        super().restore(state)
        self._queue.restore(state["queue"])


LONGEST_POSITION = 4_096


def write_mini(
    folder: Path, weights: Mapping[str, Tensor], steps: int, config: Mapping[str, object], layout: Mapping[str, object]
) -> None:
    """Write the weights, their configuration and their layout."""
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(folder / WEIGHTS, save(dict(weights), {"format": "pt", "steps": str(steps)}))
    for name, content in ((CONFIG, config), (LAYOUT_FILE, layout)):
        (folder / name).write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def write_network(
    folder: Path, names: tuple[str, str], config: Mapping[str, object], network: nn.Module, steps: int
) -> None:
    """Write the configuration of ``network`` and its float16 weights to the files ``names``."""
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(folder / names[0], (json.dumps(config, indent=1) + "\n").encode())
    weights = {name: value.cpu().contiguous().half() for name, value in network.state_dict().items()}
    write_atomically(folder / names[1], save(weights, {"format": "pt", "steps": str(steps)}))


def copy_codec(codec: Path, place: Path) -> None:
    if place.resolve() != codec.resolve():
        shutil.copytree(codec, place, dirs_exist_ok=True)


def transformer_entries(config: CausalConfig) -> dict[str, object]:
    """Transformer sizes under the names in transformers' ``config.json``."""
    return {
        "hidden_size": config.hidden,
        "intermediate_size": config.feed_forward,
        "num_hidden_layers": config.layers,
        "num_attention_heads": config.heads,
        "num_key_value_heads": config.key_value_heads,
        "head_dim": config.head_width,
        "rms_norm_eps": config.epsilon,
        "rope_theta": config.rope_theta,
        "max_position_embeddings": LONGEST_POSITION,
        "hidden_act": "silu",
        "attention_bias": False,
        "torch_dtype": "float16",
    }


CENTS = PITCH_SCALE * 1200 / math.log(2)
"""Cents per unit of a frame's pitch."""
AUDIBLE = -8.0
"""Log magnitude below which differences are ignored: 70 dB below full scale."""


def frame_error(made: Tensor, wanted: Tensor, pitch_weight: float) -> Tensor:
    """Mean absolute error of frames (B, n, numbers). Pitch is weighted by ``pitch_weight`` in voiced frames; in
    unvoiced frames it is interpolated and weighted 1 like the other numbers."""
    weights = torch.ones_like(wanted)
    weights[:, :, PITCH] = torch.where(wanted[:, :, VOICING] > 0, pitch_weight, 1.0)
    return (weights * (made - wanted).abs()).mean()


def spectral_error(decoder: NaturalDecoder, made: Tensor, wanted: Tensor) -> Tensor:
    """Mean absolute error of the audible log magnitudes that ``decoder`` makes of frames (B, n, numbers)."""
    with torch.no_grad():
        theirs = _magnitudes(decoder, wanted)
    ours = _magnitudes(decoder, made)
    return (ours.clamp(min=AUDIBLE) - theirs.clamp(min=AUDIBLE)).abs().mean()


def _magnitudes(decoder: NaturalDecoder, frames: Tensor) -> Tensor:
    """Log magnitudes (3, B · n, bins) of the pulses, the noise and the free part."""
    hidden = decoder.space.hidden(frames.flatten(0, 1)).unflatten(0, frames.shape[:2])
    spectra = decoder.network(hidden.mT)
    return torch.stack([spectra.harmonic, spectra.noise, spectra.free]).float()


ExcerptOptions = TypeVar("ExcerptOptions", bound=LearningOptions)


class NaturalExcerpts(CorpusRecipe[ExcerptOptions, NaturalClip, Network], Generic[ExcerptOptions, Network]):
    """Trains ``model`` on excerpts of ``clips``, the sufficiently long clips of ``corpus``."""

    def __init__(
        self,
        corpus: Corpus[NaturalClip],
        clips: Sequence[NaturalClip],
        model: Network,
        device: torch.device,
        options: ExcerptOptions,
    ) -> None:
        super().__init__(corpus, clips, model, device, options)
        self._decoder = NaturalDecoder.load(device=device)
        self._draw = random.Random(options.seed)

    @property
    def held_out(self) -> Sequence[NaturalClip]:
        """Validation clips, of voices held out from training."""
        clips = self.corpus.held_out
        return clips[:: max(1, len(clips) // self.options.validation_items)]

    def state(self) -> dict[str, Any]:
        return {**super().state(), "draw": draw_state(self._draw)}

    def restore(self, state: Mapping[str, Any]) -> None:
        super().restore(state)
        restore_draw(self._draw, state["draw"])
