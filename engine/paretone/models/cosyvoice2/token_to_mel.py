"""Speech tokens to mel frames: CosyVoice 2's conditional flow, at once or exactly in parts.

Official names and sizes: ``cosyvoice/flow/flow.py`` (``CausalMaskedDiffWithXvec``) and ``flow_matching.py``
(``CausalConditionalCFM``). A frame's initial noise depends only on its position, and attention sees a frame's own chunk
and earlier ones, so computed frames never change. Upstream recomputes them for every chunk; here every layer keeps its
state for each solver step.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from paretone.errors import AudioError, TextError
from paretone.models.base import IntervalWeights
from paretone.models.cosyvoice2.config import FRAMES_PER_TOKEN, TOKEN_RATE, FlowConfig, FlowSizes
from paretone.models.cosyvoice2.flow_networks import (
    Estimator,
    FlowEstimator,
    UpsamplingEncoder,
    conditions,
)
from paretone.models.files.checkpoints import loaded_strictly, read_float_weights
from paretone.models.networks.incremental import Memory

NOISE_SEED = 0
LONGEST_SECONDS = 300
"""Maximum length of prompt and speech together in seconds, for which upstream draws noise."""


@dataclass(frozen=True)
class AcousticPrompt:
    """The flow's inputs for a voice: ``tokens`` (1, P), ``mel`` (1, 2 · P, bands) and ``speaker`` (1, width)."""

    tokens: Tensor
    mel: Tensor
    speaker: Tensor

    def to(self, device: torch.device) -> AcousticPrompt:
        return AcousticPrompt(self.tokens.to(device), self.mel.to(device), self.speaker.to(device))


@dataclass(frozen=True)
class FewEvaluations:
    """Replacement of the flow's steps: an estimator that carries frames over intervals of time, guidance included."""

    estimator: FlowEstimator
    """Estimator that takes intervals as times."""
    count: int
    """Evaluations from noise to frames."""
    temperature: float = 1.0
    """Scale of the initial noise."""


def cosine_times(steps: int) -> Tensor:
    """Ends of all solver steps, (steps + 1,) from 0 to 1: short steps first."""
    return 1 - torch.cos(torch.linspace(0, 1, steps + 1) * 0.5 * math.pi)


class TokenFlow(nn.Module):
    """What the flows of CosyVoice 2 and 3 share: tables of tokens and speakers, and the initial noise.
    :class:`MelStream` runs a flow."""

    noise: Tensor

    def __init__(self, config: FlowSizes, width: int) -> None:
        """``width`` is that of an embedded token."""
        super().__init__()
        self.config = config
        self.input_embedding = nn.Embedding(config.tokens, width)
        self.spk_embed_affine_layer = nn.Linear(config.speaker_width, config.bands)
        self.decoder = nn.ModuleDict({"estimator": self.new_estimator()})
        frames = LONGEST_SECONDS * TOKEN_RATE * FRAMES_PER_TOKEN
        generator = torch.Generator().manual_seed(NOISE_SEED)
        noise = torch.randn(1, config.bands, frames, generator=generator, device="cpu")
        self.register_buffer("noise", noise, persistent=False)

    def new_estimator(self) -> FlowEstimator:
        """A network of the velocity like the flow's own, not initialised."""
        raise NotImplementedError

    @property
    def estimator(self) -> FlowEstimator:
        return cast("FlowEstimator", self.decoder["estimator"])

    def encode(self, tokens: Sequence[int], ahead: Sequence[int], first: int, chunked: bool, memory: Memory) -> Tensor:
        """The estimator's input (1, bands, 2 · n) for ``tokens``, which follow the ``first`` ones. ``ahead`` are the
        next tokens, none at the end; without ``chunked``, attention sees everything."""
        raise NotImplementedError

    def encoded(self, tokens: Sequence[int]) -> Tensor:
        """:meth:`encode` for a complete request, with streaming's attention."""
        memory = Memory()
        memory.closing = True
        return self.encode(tokens, (), 0, True, memory)

    def embed(self, tokens: Sequence[int]) -> Tensor:
        """(n,) to (1, n, width)."""
        ids = torch.tensor([tokens], dtype=torch.long, device=self.input_embedding.weight.device)
        return self.input_embedding(ids.clamp(min=0))

    def speaker(self, vector: Tensor) -> Tensor:
        """(1, speaker_width), of any norm, to (1, bands)."""
        return self.spk_embed_affine_layer(F.normalize(vector, dim=1))


class TokenToMel(TokenFlow):
    """The weights of CosyVoice 2's flow."""

    config: FlowConfig

    def __init__(self, config: FlowConfig = FlowConfig()) -> None:
        super().__init__(config, config.encoder.width)
        self.encoder = UpsamplingEncoder(config.encoder)
        self.encoder_proj = nn.Linear(config.encoder.width, config.bands)

    def new_estimator(self) -> Estimator:
        config = self.config
        return Estimator(config.estimator, config.bands, config.encoder.chunk * FRAMES_PER_TOKEN)

    def encode(self, tokens: Sequence[int], ahead: Sequence[int], first: int, chunked: bool, memory: Memory) -> Tensor:
        following = self.embed(ahead) if ahead else None
        return self.encoder_proj(self.encoder(self.embed(tokens), following, first, chunked, memory)).mT


class MelStream:
    """Mel frames of one request in parts, equal to computing at once.

    With ``chunked`` attention, tokens become frames as soon as their chunk and the look-ahead are complete. This takes
    memory, mainly for the estimator's keys and values, for each solver step and both guidance branches: in the release
    4.6 MB for each of the first 500 frames, and 1.1 MB for each later one (see
    :meth:`paretone.models.networks.incremental.Memory.projected`). With ``at_once``, :meth:`push` only collects
    tokens, and no state is kept. Without ``chunked``, attention sees everything, as upstream does for requests that are
    not streamed.
    """

    def __init__(
        self,
        model: TokenFlow,
        prompt: AcousticPrompt,
        chunked: bool = True,
        at_once: bool = False,
        few: FewEvaluations | None = None,
        steps: int | None = None,
        guidance: float | None = None,
    ) -> None:
        """``steps`` and ``guidance`` replace the model's own; ``few`` replaces both. Raises
        :class:`paretone.errors.AudioError` for a prompt whose parts do not belong together."""
        prompt = prompt.to(model.noise.device)
        if prompt.mel.shape[1] != FRAMES_PER_TOKEN * prompt.tokens.shape[1]:
            raise AudioError(
                f"A prompt of {prompt.tokens.shape[1]} speech tokens needs {FRAMES_PER_TOKEN} mel frames for each, but "
                f"has {prompt.mel.shape[1]}; read the recording again."
            )
        self._model, self._chunked, self._at_once = model, chunked, at_once or not chunked
        self._prompt = prompt.mel.mT
        self._tokens: list[int] = prompt.tokens[0].tolist()
        self._done = 0
        """Number of tokens converted to frames."""
        self._memory = Memory()
        self._few = few
        self._steps = few.count if few else steps or model.config.steps
        self._guidance = 0.0 if few else model.config.guidance if guidance is None else guidance
        self._estimator = model.estimator if few is None else few.estimator
        self._step_memories = [Memory() for _ in range(self._steps)]
        with torch.inference_mode():
            self._speaker = model.speaker(prompt.speaker)
            self.times, self._lengths = self._schedule()
            times = self.times
            if few is not None:  # Each evaluation carries the state to the time of the next, the last one to speech.
                times = torch.stack([times, torch.cat([times[1:], times.new_ones(1)])], dim=-1)
            self._time_table = self._estimator.time_table(times)

    def push(self, tokens: Sequence[int]) -> Tensor:
        """Add speech tokens; return mel frames (1, bands, n) that are now final, without the prompt's."""
        self._take(tokens)
        config = self._model.config
        ready = (len(self._tokens) - config.look_ahead) // config.chunk * config.chunk
        return self._nothing() if self._at_once else self._advance(ready)

    def finish(self) -> Tensor:
        """The remaining mel frames (1, bands, n); the last call."""
        return self._advance(len(self._tokens), last=True)

    def whole(self, tokens: Sequence[int]) -> Tensor:
        """All frames (1, bands, n) of the request ``tokens`` in one pass; the only call."""
        self._take(tokens)
        return self.finish()

    def unfinished(self, tokens: Sequence[int]) -> Tensor:
        """All frames computable from ``tokens`` before later ones arrive; the only call. Frames of the incomplete last
        chunk are inexact. Reproduces upstream's streaming."""
        self._take(tokens)
        return self._advance(len(self._tokens) - self._model.config.look_ahead, last=True)

    def _take(self, tokens: Sequence[int]) -> None:
        self._tokens += tokens
        if FRAMES_PER_TOKEN * len(self._tokens) > self._model.noise.shape[-1]:
            raise TextError(
                f"Prompt and speech are longer than {LONGEST_SECONDS} seconds, the most that CosyVoice 2 speaks at "
                "once; split the text."
            )

    def _nothing(self) -> Tensor:
        return self._prompt.new_empty(1, self._model.config.bands, 0)

    @torch.inference_mode()
    def _advance(self, end: int, last: bool = False) -> Tensor:
        """Frames of the tokens up to ``end``; ``last`` if nothing follows in this stream."""
        first, model = self._done, self._model
        if end <= first:
            return self._nothing()
        self._done = end
        for memory in (self._memory, *self._step_memories):
            memory.closing = last
        ahead = self._tokens[end : end + model.config.look_ahead]
        encoded = model.encode(self._tokens[first:end], ahead, first, self._chunked, self._memory)
        mel = self._solved(encoded, FRAMES_PER_TOKEN * first)
        return mel[..., max(self._prompt.shape[-1] - FRAMES_PER_TOKEN * first, 0) :]

    def _solved(self, encoded: Tensor, first: int) -> Tensor:
        """Frames for ``encoded`` (1, bands, n), after the ``first``: by Euler with guidance, or in few evaluations."""
        model, count = self._model, encoded.shape[-1]
        known = self._prompt[..., first : first + count]
        prompt = F.pad(known, (0, count - known.shape[-1]))
        given = conditions(encoded, self._speaker, prompt)
        state = model.noise[..., first : first + count]
        if self._few is not None:
            state = self._few.temperature * state
        if not self._guidance:
            given = given[:1]
        guidance = self._guidance
        for length, times, memory in zip(self._lengths, self._time_table, self._step_memories, strict=True):
            velocity = self._estimator(state, given, times, first, self._chunked, memory)
            if guidance:
                velocity = (1 + guidance) * velocity[:1] - guidance * velocity[1:]
            state = state + length * velocity
        return state

    def _schedule(self) -> tuple[Tensor, list[Tensor]]:
        """Start (steps,) and length of each step; starts are cumulative sums, with upstream's rounding."""
        ends = cosine_times(self._steps)
        starts, lengths = [ends[0]], [ends[1] - ends[0]]
        for end in ends[2:]:
            starts.append(starts[-1] + lengths[-1])
            lengths.append(end - starts[-1])
        device = self._model.noise.device
        return torch.stack(starts).to(device), [length.to(device) for length in lengths]


# Weights for carrying mel frames over intervals of time.
#
# A file has the keys of the estimator in ``flow.pt``, and those of one more perceptron,
# ``decoder.estimator.time_mlp.interval_mlp.{0,2}.{weight,bias}``; its metadata are those of
# :mod:`paretone.models.files.trained_weights`, with the SHA-256 of ``flow.pt`` as ``base``. The encoder and everything
# else stay those of ``flow.pt``.


PREFIX = "decoder.estimator."


def official(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """``weights`` of an estimator under their keys in ``flow.pt``."""
    return {PREFIX + name: value for name, value in weights.items()}


def interval_estimator(flow: TokenFlow, weights: IntervalWeights) -> FlowEstimator:
    """Copy of ``flow``'s estimator with interval weights, on its device, ready for inference. Raises
    :class:`paretone.errors.CheckpointError`."""

    def make() -> FlowEstimator:
        made = flow.new_estimator()
        made.add_interval()
        return made

    path = Path(weights.path)
    named = {name.removeprefix(PREFIX): value for name, value in read_float_weights(path).items()}
    return loaded_strictly(make, named, str(path)).to(flow.noise.device)
