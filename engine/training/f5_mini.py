"""The recipe of the bundled F5 model, ``f5-mini``: a small DiT over phones, one phone a mel frame.

What a small model cannot afford to learn is which sound belongs to which moment. Here it is given away: the text has
as many tokens as the mel has frames, token and frame lie side by side, and a table of mean durations stands in at
synthesis. The official layout does not change, so the official code runs the result.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from engine.front_end.durations import labels
from engine.front_end.phones import CONSONANTS, PAUSE, VOWELS, PhoneVocabulary
from engine.models.f5.config import BackboneConfig
from engine.models.f5.dit import DiT
from engine.training.corpora import Clip, Corpus
from engine.training.export import export_f5
from engine.training.flow_matching import (
    FlowMatchingDraw,
    FlowMatchingOptions,
    SpeechBatch,
    draw_problem,
    predicted_velocity,
    span_error,
    synthesis_problem,
)
from engine.training.optimisers import LayerMatrices, MuonAndAdamW, Rates
from engine.training.schedule import AveragedModel, learning_rate_scale
from engine.training.session import require_finite

VOCABULARY = PhoneVocabulary((PAUSE, *sorted(VOWELS | CONSONANTS)))
ARCHITECTURE = BackboneConfig(
    "DiT",
    dim=256,
    depth=8,
    heads=4,
    ff_mult=2,
    text_dim=128,
    text_mask_padding=True,
    conv_layers=3,
    text_num_embeds=len(VOCABULARY.phones),
)
LAYER_MATRICES = LayerMatrices("transformer_blocks.", apart_from="attn_norm")
VALIDATION_TIMES = (0.05, 0.40)
"""Close to the noise is where a model that mumbles gives itself away, while its mean loss looks fine."""


@dataclass(frozen=True)
class F5Options:
    """What a run of the recipe can change."""

    frames: int = 1_800
    """Mel frames of one step, padding included."""
    matrix_rate: float = 0.02
    """Learning rate of Muon, for the matrices of the blocks."""
    other_rate: float = 1.5e-3
    """Learning rate of AdamW, for everything else."""
    warm_up: int = 100
    hold: float = 0.3
    joined_share: float = 0.5
    """Share of the items that are two clips of one voice."""
    average_decay: float = 0.999
    half_precision: bool = False
    """Forward pass, backward pass and Muon's iteration in bfloat16; weights and their updates stay in float32."""
    validation_items: int = 24
    seed: int = 1
    objective: FlowMatchingOptions = field(default_factory=FlowMatchingOptions)


class Spoken(Protocol):
    """What :class:`BatchQueue` needs to know of a clip."""

    @property
    def voice(self) -> str: ...

    @property
    def frames(self) -> int: ...


class BatchQueue:
    """An endless row of batches of items of about the same length. An item is one clip or two, by their numbers."""

    POOL = 192
    """Items that are drawn at a time, sorted by length and packed."""

    def __init__(self, clips: Sequence[Spoken], frames: int, joined_share: float, seed: int) -> None:
        self._lengths = [clip.frames for clip in clips]
        self._frames, self._joined_share = frames, joined_share
        self._draw = random.Random(seed)
        self._pending: list[list[list[int]]] = []
        self._by_voice: dict[str, list[int]] = {}
        for number, clip in enumerate(clips):
            self._by_voice.setdefault(clip.voice, []).append(number)

    def next(self) -> list[list[int]]:
        """The clip numbers of every item of the next batch."""
        if not self._pending:
            self._pending = self._packed()
        return self._pending.pop()

    def _packed(self) -> list[list[list[int]]]:
        items = sorted((self._item() for _ in range(self.POOL)), key=self._length)
        batches: list[list[list[int]]] = [[]]
        for item in items:
            if batches[-1] and (len(batches[-1]) + 1) * self._length(item) > self._frames:
                batches.append([])
            batches[-1].append(item)
        self._draw.shuffle(batches)
        return batches

    def _item(self) -> list[int]:
        clips = self._by_voice[self._draw.choice(sorted(self._by_voice))]
        count = 2 if self._draw.random() < self._joined_share else 1
        return [self._draw.choice(clips) for _ in range(count)]

    def _length(self, item: list[int]) -> int:
        return sum(self._lengths[number] for number in item)

    def state(self) -> dict[str, Any]:
        version, internal, gauss = self._draw.getstate()
        return {"draw": [version, list(internal), gauss], "pending": self._pending}

    def restore(self, state: Mapping[str, Any]) -> None:
        version, internal, gauss = state["draw"]
        self._draw.setstate((version, tuple(internal), gauss))
        self._pending = [[list(item) for item in batch] for batch in state["pending"]]


class F5Mini:
    """Trains a small F5; see :class:`engine.training.session.Recipe`."""

    name = "f5-mini"

    def __init__(
        self,
        corpus: Corpus,
        device: torch.device,
        options: F5Options = F5Options(),
        architecture: BackboneConfig = ARCHITECTURE,
    ) -> None:
        self.corpus, self.device, self.options = corpus, device, options
        torch.manual_seed(options.seed)
        self.model = DiT(architecture)
        initialise(self.model, _mean_mel(corpus.training))
        self.model.to(device)
        self.average = AveragedModel(self.model, options.average_decay)
        rates = Rates(options.matrix_rate, options.other_rate)
        self._optimisers = MuonAndAdamW(self.model, LAYER_MATRICES, rates, half_precision=options.half_precision)
        self._queue = BatchQueue(corpus.training, options.frames, options.joined_share, options.seed)
        self._generator = torch.Generator().manual_seed(options.seed)
        self._steps = 0

    def describe(self) -> dict[str, Any]:
        return {
            "corpus": f"flite, {len(self.corpus.training)} clips, {self.corpus.seconds / 3600:.2f} h",
            "parameters": sum(one.numel() for one in self.model.parameters()),
            "initial_weights": "random",
            "options": asdict(self.options),
        }

    def step(self, number: int, progress: float) -> dict[str, float]:
        options = self.options
        batch = collate([[self.corpus.training[one] for one in item] for item in self._queue.next()])
        scale = learning_rate_scale(number, progress, options.warm_up, options.hold)
        self._optimisers.start(scale)
        # Drawn on the processor, so that one seed means one run whatever the device.
        problem = draw_problem(batch, options.objective, self._generator).to(self.device)
        loss = self._error(self.model, batch, problem)
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        require_finite(float(loss.detach() + norm), "loss or its gradient", number)
        self._optimisers.step()
        self.average.update(self.model, number)
        self._steps = number
        return {"flow": float(loss.detach())}

    def _error(self, model: DiT, batch: SpeechBatch, problem: FlowMatchingDraw) -> Tensor:
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.options.half_precision):
            velocity = predicted_velocity(model, batch.ids.to(self.device), problem)
        return span_error(velocity, problem.target, problem.span)

    @torch.no_grad()
    def validate(self) -> dict[str, float]:
        """The span error at :data:`VALIDATION_TIMES` where a prompt is known and the clip after it is not."""
        figures = {}
        for time in VALIDATION_TIMES:
            generator = torch.Generator().manual_seed(7)
            errors = []
            for batch in self._validation_batches:
                problem = synthesis_problem(batch, time, generator).to(self.device)
                errors.append(float(self._error(self.average.module, batch, problem)))
            figures[f"t={time:.2f}"] = float(np.mean(errors))
        return figures

    @cached_property
    def _validation_batches(self) -> list[SpeechBatch]:
        draw = random.Random(3)
        items = []
        for clip in self.corpus.held_out[:: max(1, len(self.corpus.held_out) // self.options.validation_items)]:
            others = [one for one in self.corpus.held_out if one.voice == clip.voice and one is not clip]
            items.append([draw.choice(others), clip])
        items.sort(key=lambda item: sum(clip.frames for clip in item))
        return [collate(items[start : start + 8]) for start in range(0, len(items), 8)]

    def state(self) -> dict[str, Any]:
        return {
            "model": self.model.state_dict(),
            "average": self.average.module.state_dict(),
            "optimisers": self._optimisers.state(),
            "queue": self._queue.state(),
            "generator": self._generator.get_state(),
            "steps": self._steps,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        self.model.load_state_dict(state["model"])
        self.average.module.load_state_dict(state["average"])
        self._optimisers.restore(state["optimisers"])
        self._queue.restore(state["queue"])
        self._generator.set_state(state["generator"])
        self._steps = state["steps"]

    def export(self, folder: Path) -> None:
        export_f5(folder, self.name, self.average.module, VOCABULARY, self.corpus, self._steps)


def collate(items: list[list[Clip]]) -> SpeechBatch:
    """A batch whose items are one clip, or two of one voice joined."""
    lengths = [sum(clip.frames for clip in item) for item in items]
    mel = torch.zeros(len(items), max(lengths), items[0][0].mel.shape[1])
    ids = torch.full((len(items), max(lengths)), -1)
    for row, item in enumerate(items):
        first = 0
        for clip in item:
            last = first + clip.frames
            mel[row, first:last] = torch.from_numpy(clip.mel.astype(np.float32))
            ids[row, first:last] = torch.from_numpy(labels(clip.phones, clip.frames, VOCABULARY))
            first = last
    joins = [item[0].frames if len(item) > 1 else 0 for item in items]
    return SpeechBatch(mel, ids, torch.tensor(lengths), torch.tensor(joins))


@torch.no_grad()
def initialise(model: DiT, mean_mel: Tensor) -> None:
    """The official initialisation (AdaLN and output at zero), except that the gates start half open and the output at
    the corpus's mean mel: both save a small model its first hundreds of steps."""
    for block in model.transformer_blocks:
        block.attn_norm.linear.weight.zero_()
        shift, scale, gate, shift_forward, scale_forward, gate_forward = block.attn_norm.linear.bias.chunk(6)
        for part in (shift, scale, shift_forward, scale_forward):
            part.zero_()
        for part in (gate, gate_forward):
            part.fill_(0.5)
    model.norm_out.linear.weight.zero_()
    model.norm_out.linear.bias.zero_()
    model.proj_out.weight.zero_()
    model.proj_out.bias.copy_(mean_mel)
    model.text_embed.text_embed.weight.mul_(0.5)


def _mean_mel(clips: tuple[Clip, ...]) -> Tensor:
    return torch.from_numpy(np.concatenate([clip.mel for clip in clips[::7]]).astype(np.float32).mean(axis=0))
