"""The flows of CosyVoice 2 and 3 under plans, part by part, equal to one pass over the whole.

A part's memories keep what later parts attend to, for each evaluation. What a plan skips at an evaluation, it skips in
every part, so nothing is missing there; plans that decide as they run (:attr:`FlowPlan.decides`) take the whole request
in one part.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from paretone.errors import AudioError, TextError
from paretone.models.base import FLOW, IntervalWeights, MelFlow, ModelInfo, Voice, WeightSet
from paretone.models.cosyvoice2.config import FLOW_OPTIONS, FRAMES_PER_TOKEN, TOKEN_RATE
from paretone.models.cosyvoice2.flow_networks import FlowEstimator, conditions
from paretone.models.cosyvoice2.token_to_mel import LONGEST_SECONDS, AcousticPrompt, TokenFlow, own_names
from paretone.models.families.evaluations import FlowScript
from paretone.models.families.flow import Backbones, PlannedFlow
from paretone.models.families.passages import Sampler
from paretone.models.files.checkpoints import loaded_strictly, read_float_weights
from paretone.models.kernels.graphs import GraphCache
from paretone.models.kernels.products import packed
from paretone.models.networks.incremental import Memory
from paretone.observer import SILENT, Check, Observer
from paretone.sampling.flow import euler_steps
from paretone.sampling.guidance import ALL, is_guided
from paretone.sampling.operations import OperationCounts
from paretone.setting.knobs import Values
from paretone.setting.plan import FlowPlan

NOBODY = Voice("", "", "", "")
ReadScript = Callable[[str, Voice, FlowPlan, Observer], FlowScript]


@dataclass(frozen=True)
class MelPart:
    """Frames to compute in one pass."""

    conditions: Tensor = field(repr=False)
    """(BRANCHES, 3 · bands, frames)."""
    first: int
    """Frames before."""
    memories: Sequence[Memory]
    """Past of each evaluation."""
    text: str = ""

    @property
    def frames(self) -> int:
        return self.conditions.shape[-1]


def conditions_of_part(encoded: Tensor, first: int, speaker: Tensor, prompt: Tensor) -> Tensor:
    """Conditions of frames after the ``first``: of ``encoded`` tokens (1, bands, n) and the whole ``prompt``."""
    known = prompt[..., first : first + encoded.shape[-1]]
    return conditions(encoded, speaker, F.pad(known, (0, encoded.shape[-1] - known.shape[-1])))


class PlannedMel(PlannedFlow):
    """A flow from speech tokens to mel frames that runs plans."""

    _frame_seconds = 1 / (TOKEN_RATE * FRAMES_PER_TOKEN)

    def __init__(self, flow: TokenFlow, info: ModelInfo | None = None, read_script: ReadScript | None = None) -> None:
        """``info`` describes the flow as a model; ``read_script`` speaks a text up to its tokens, for techniques that
        measure before the first take."""
        self.flow, self._read_script = packed(flow), read_script
        self.info = info or _INFO
        self.backbone, self._device = flow.estimator, flow.noise.device
        self._backbones = Backbones(flow.estimator, self._read, lambda estimator: None)
        self.graphs, self.memory = GraphCache(), {}

    def planned(self, plan: FlowPlan | None = None, voice: Voice = NOBODY, observer: Observer = SILENT) -> FlowScript:
        """A script for parts under ``plan``, by default that of the flow's own options. Raises :class:`PlainError`."""
        config = self.flow.config
        own = {"steps": config.steps, "guidance": config.guidance}
        plan = plan or FlowPlan.begin(self.info, MelFlow(FLOW_OPTIONS).values(Values()).replace(**own))
        return FlowScript(voice, plan, self._network(plan, voice, observer), None, (), (), 0.0)  # type: ignore[arg-type]  # parts come later

    def memories(self, script: FlowScript, closing: bool = False) -> list[Memory]:
        return [Memory(closing) for _ in self._evaluation_times(script.times, script.options)]

    def whole(self, prompt: AcousticPrompt, tokens: Sequence[int], script: FlowScript, text: str = "") -> MelPart:
        """All frames of ``prompt`` and ``tokens`` as one part, with streaming's attention."""
        prompt = prompt.to(self._device)
        everything = [*prompt.tokens[0].tolist(), *tokens]
        given = conditions_of_part(self.flow.encoded(everything), 0, self.flow.speaker(prompt.speaker), prompt.mel.mT)
        return MelPart(given, 0, self.memories(script, closing=True), text)

    # --- As a flow model ----------------------------------------------------------------------------------------------
    def begin(
        self,
        backbone: FlowEstimator,
        passage: MelPart,
        prompt: Any,
        times: np.ndarray,
        options: Values,
        branches: Sequence[int] | None = None,
    ) -> Any:
        rows = slice(None if is_guided(options["guidance"]) else 1)
        given = passage.conditions[rows if branches is None else [int(one > ALL) for one in branches]]
        return backbone.begin(given, backbone.schedule(times), passage.first, passage.memories)

    def sampler(self, passage: MelPart, times: np.ndarray, seed: int, options: Values) -> Sampler:
        noise = self.flow.noise[..., passage.first : passage.first + passage.frames].mT
        return Sampler(noise, euler_steps(times))

    def guided(self, velocities: Tensor, options: Values) -> Tensor:
        strength = float(options["guidance"])
        if not is_guided(strength):
            return velocities
        # In upstream's order.
        return (1 + strength) * velocities[:1] - strength * velocities[1:]

    def evaluation_cost(self, passage: MelPart, options: Values, branches: int | None = None) -> OperationCounts:
        count = branches or self.info.guidance.branches(options)
        return self.flow.estimator.operations(passage.frames, count, passage.first)

    def _script_of(self, text: str, voice: Voice, plan: FlowPlan, observer: Observer) -> FlowScript:
        assert self._read_script is not None
        return self._read_script(text, voice, plan, observer)

    def _read(self, weights: WeightSet | IntervalWeights) -> FlowEstimator:
        """Copy of the estimator with other weights, on its device, ready for inference. Raises
        :class:`CheckpointError`."""

        def make() -> FlowEstimator:
            made = self.flow.new_estimator()
            if isinstance(weights, IntervalWeights):
                made.add_interval()
            return made

        path = Path(weights.path)
        return packed(loaded_strictly(make, own_names(read_float_weights(path)), str(path)).to(self._device))


class MelStream:
    """Mel frames of one request in parts, equal to computing at once.

    Tokens become frames as soon as their chunk and the look-ahead are complete. This takes memory, mainly for the
    estimator's keys and values, for each solver step and both guidance branches: in the release 4.6 MB for each of the
    first 500 frames, and 1.1 MB for each later one (see :meth:`paretone.models.networks.incremental.Memory.projected`).
    With ``at_once``, :meth:`push` only collects tokens, and no state is kept.
    """

    def __init__(
        self,
        flow: PlannedMel | TokenFlow,
        prompt: AcousticPrompt,
        at_once: bool = False,
        script: FlowScript | None = None,
        check: Check = lambda: None,
    ) -> None:
        """``script`` from :meth:`PlannedMel.planned`, by default that of the flow's own options; ``check`` is called
        after every step, and may raise to cancel. Raises :class:`paretone.errors.AudioError` for a prompt whose parts
        do not belong together."""
        self._flow = PlannedMel(flow) if isinstance(flow, TokenFlow) else flow
        self._model = self._flow.flow
        prompt = prompt.to(self._model.noise.device)
        if prompt.mel.shape[1] != FRAMES_PER_TOKEN * prompt.tokens.shape[1]:
            raise AudioError(
                f"A prompt of {prompt.tokens.shape[1]} speech tokens needs {FRAMES_PER_TOKEN} mel frames for each, but "
                f"has {prompt.mel.shape[1]}; read the recording again."
            )
        self.script = script or self._flow.planned()
        self._at_once = at_once or self.script.plan.decides
        self._prompt = prompt.mel.mT
        self._tokens: list[int] = prompt.tokens[0].tolist()
        self._done = 0
        """Number of tokens converted to frames."""
        self._memory = Memory()
        self._step_memories = self._flow.memories(self.script)
        self._check = check
        self.saved: frozenset[str] = frozenset()
        """Parts of the plan that saved operations; see :class:`paretone.setting.plan.Idle`."""
        self.operations, self.reference_operations = 0.0, 0.0
        with torch.inference_mode():
            self._speaker = self._model.speaker(prompt.speaker)

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
                f"Prompt and speech are longer than {LONGEST_SECONDS} seconds, the most that CosyVoice speaks at "
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
        encoded = model.encode(self._tokens[first:end], ahead, first, self._memory)
        frames = FRAMES_PER_TOKEN * first
        given = conditions_of_part(encoded, frames, self._speaker, self._prompt)
        part = MelPart(given, frames, self._step_memories)
        state, evaluations = self._flow.sampled(self.script, part, lambda step, state: self._check())
        self.saved |= evaluations.saved
        self.operations += sum(evaluations.operations)
        self.reference_operations += self._flow.reference_operations(self.script.plan, part)
        return state.mT[..., max(self._prompt.shape[-1] - frames, 0) :]


_INFO = ModelInfo("", "The flow", FLOW, "", "", "", "", "", "float32", 0, 0, 2, 0, "", FLOW_OPTIONS)
"""Stands for the model of a flow on its own."""
