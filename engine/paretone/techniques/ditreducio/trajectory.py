"""Trajectory of one sentence through the steps while skips are tried on it.

The result equals running the whole backbone for every trial, and again to take the step. A trial costs less, though:

* layers below the tried one are not computed again;
* branches are independent, so skipping does not change the first branch: only the others are computed;
* an accepted trial has already computed the layers above it, from which later trials and the step itself start.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from paretone.errors import PlainError, SettingError
from paretone.observer import Work
from paretone.sampling.actions import SkipAction, extrapolation_factor
from paretone.sampling.calibration_target import CalibrationTarget, diagonal_similarity
from paretone.sampling.skipping import COMPUTE, LayerMemory, LayerPlan, ModuleMemory, ModulePlan, residual
from paretone.setting.knobs import Values
from paretone.techniques.ditreducio.record import CALIBRATION, PRE_CALIBRATION


def mean_absolute_error(output: Tensor, changed: Tensor) -> float:
    """The paper's error, equation 3."""
    return (output - changed).abs().mean().item()


def relative_error(output: Tensor, changed: Tensor) -> float:
    """The official code's error: each difference over the *signed* larger value, its magnitude clipped at 10."""
    quotient = (output - changed) / (torch.maximum(output, changed) + 1e-6)
    return quotient.abs().clamp(max=10).mean().item()


ERRORS: dict[str, Callable[[Tensor, Tensor], float]] = {"mae": mean_absolute_error, "relative": relative_error}


def official_combination(output: Tensor) -> Tensor:
    """u + 2.5 (c − u) + 1.6 (c − c_txt), (items, frames, width), of the outputs of speaker and text c, text c_txt, and
    neither u: what the official code compares for MegaTTS 3, before the last projection. Other weights, and another
    order, than those of its guidance."""
    c, c_txt, u = output.chunk(3)
    return u + 2.5 * (c - u) + 1.6 * (c - c_txt)


def comparing(target: CalibrationTarget, compare: str, phase: str = CALIBRATION) -> Callable[[Tensor], Tensor]:
    """Maps all branches' outputs to what the knob ``compare`` has compared in ``phase``. Raises :class:`SettingError`
    for a combination of branches that do not run."""
    if compare == "guided":
        return target.guide
    if compare == "branches":
        return lambda output: output
    if target.branches != 3:
        raise SettingError(
            "The combination that the official MegaTTS 3 code compares needs its three branches, and "
            f"{target.branches} run here; compare all branches, or choose MegaTTS 3 with both guidance weights above 1."
        )
    # The code of 2025 combines in both passes, that of 2026 in pre-calibration only.
    if compare == "combined" or phase == PRE_CALIBRATION:
        return official_combination
    return lambda output: output


def check_similarity(target: CalibrationTarget, check_phase: str, layer: int, attention_input: Tensor) -> float:
    """Diagonal similarity of a layer in the check phase, from its modulated input (rows, frames, width), all branches.
    ``conditional``: of the first branch, scaled by the whole width. ``first_half``: mean over the first half of the
    branches, rounded up (two of MegaTTS 3's three), in float64, scaled by a head's width."""
    items, backbone = len(target.noise), target.backbone
    if check_phase == "conditional":
        return diagonal_similarity(*backbone.attention_map_inputs(layer, attention_input[:items]))
    query, key = backbone.attention_map_inputs(layer, attention_input[: items * -(-target.branches // 2)])
    return diagonal_similarity(query.double(), key.double(), width=query.shape[-1] // backbone.heads(layer))


COMPUTING = LayerPlan(ModulePlan(keep_output=True), ModulePlan(keep_output=True))
REUSING = LayerPlan(ModulePlan(SkipAction.TS), ModulePlan(SkipAction.TS))
SPARING_ATTENTION = LayerPlan(ModulePlan(SkipAction.TS), ModulePlan(keep_output=True))
"""Reuse the attention's output, compute the feed-forward."""


@dataclass
class Path:
    """Path through the layers at one step: inputs and memories of the layers, and the output."""

    inputs: list[Tensor]
    memories: list[LayerMemory]
    output: Tensor


@dataclass(frozen=True)
class Outcome:
    """A candidate at one layer: the layer's memory after it, and the path above."""

    action: SkipAction
    memory: LayerMemory
    above: Path


class Trajectory:
    """State of a sentence from step to step, and its path through the layers at the current step. ``begin`` computes a
    step; ``outcomes``, ``error``, ``accept`` and ``settle`` go up its layers; ``finish`` takes it. With
    ``side_by_side`` all candidates of a cell pass the remaining layers in one batch."""

    def __init__(self, target: CalibrationTarget, knobs: Values, work: Work, side_by_side: bool = False) -> None:
        self.calibration_target = target
        self._run, self._backbone = target.run, target.backbone
        self._layers = target.backbone.layers
        self._items = len(target.noise)
        self._error = ERRORS[str(knobs["metric"])]
        self._compare, self._check_phase = str(knobs["compare"]), str(knobs["check_phase"])
        self._compared = comparing(target, self._compare)
        self._branch_skip = str(knobs["branch_skip"])
        self._forecasts = knobs["temporal"] == "forecast"
        self._work = work
        self._side_by_side = side_by_side
        self._states = [target.noise]
        """States along the trajectory without skips: before each step, and after the last."""
        self._first_memories: list[LayerMemory] = []
        """Memories of the layers after step 0, which never skips."""
        self.state = target.noise
        self._memories: list[LayerMemory] = [LayerMemory() for _ in range(self._layers)]
        self._kept_at: list[tuple[int | None, int | None]] = [(None, None)] * self._layers
        """Last two steps at which each layer's memory was stored, latest first."""
        self._recalled = self._memories
        """Memories for skips at the current step, extrapolated if forecasting."""

    # --- Without skips ------------------------------------------------------------------------------------------------
    def explore(self, step: int) -> np.ndarray:
        """Take ``step`` without skips, store its state for :meth:`restart` and :meth:`pass_by`; return the layers'
        similarities."""
        similarities = np.full(self._layers, np.nan)

        def probe(layer: int, name: str, value: Tensor) -> None:
            if name == "attention_input":
                similarities[layer] = check_similarity(self.calibration_target, self._check_phase, layer, value)

        entered = hidden = self._backbone.enter(self._states[-1], step, self._run)
        for layer in range(self._layers):
            memory = LayerMemory()
            plan = COMPUTE if step else COMPUTING
            hidden = self._backbone.layer(layer, hidden, step, self._run, plan, memory, probe)
            if step == 0:
                self._first_memories.append(self._settled(memory, LayerMemory()))
            self._work.done(1)
        output = self._backbone.leave(hidden, entered, step, self._run)
        self._states.append(self._stepped(self._states[-1], step, output))
        return similarities

    def restart(self, phase: str) -> None:
        """Go back to the state after step 0, for a pass."""
        self._compared = comparing(self.calibration_target, self._compare, phase)
        self.state, self._memories = self._states[1], list(self._first_memories)
        self._kept_at = [(0, None)] * self._layers

    @property
    def reaches_back(self) -> int:
        """Number of computed steps that a skip uses."""
        return 2 if self._forecasts else 1

    def pass_by(self, step: int, remember: bool) -> None:
        """Take ``step`` as in :meth:`explore`, valid while nothing has been skipped. With ``remember``, store the
        layers' outputs for skips at the next step; earlier steps that such a skip uses must be remembered, too."""
        if remember:
            self.begin(step, (SkipAction.NONE,) * self._layers)
            for layer in range(self._layers):
                self.settle(layer, SkipAction.NONE)
        self.state = self._states[step + 1]

    # --- With skips ---------------------------------------------------------------------------------------------------
    def begin(self, step: int, given: Sequence[SkipAction]) -> None:
        """Compute ``step`` with the ``given`` actions in force."""
        self._step, self._given = step, given
        self._recalled = []
        for memory, kept_at in zip(self._memories, self._kept_at, strict=True):
            further = extrapolation_factor(self.calibration_target.times, step, *kept_at) if self._forecasts else 0.0
            if further:
                modules = (memory.attention, memory.feed_forward)
                memory = LayerMemory(*(ModuleMemory(one.recalled(further), one.residual) for one in modules))
            self._recalled.append(memory)
        self._entered = self._backbone.enter(self.state, step, self._run)
        self._path = self._walk(0, self._entered, self._entered)
        self._baseline = self._compared(self._path.output)
        self._work.done(self._layers)

    @property
    def velocity(self) -> Tensor:
        """Velocity for the sampler under all accepted skips of the current step."""
        return self.calibration_target.guide(self._path.output)

    def outcomes(self, layer: int, candidates: Sequence[SkipAction]) -> Iterator[Outcome]:
        """Outcome of each candidate of one layer, given the accepted ones below. Call for layers from the lowest up."""
        hidden = self._path.inputs[layer]
        if self._side_by_side and len(candidates) > 1:
            starts = [self._start(layer, hidden, action) for action in candidates]
            rows = torch.cat([torch.arange(len(self._entered))[-len(first) :] for first, _ in starts])
            rows = rows.to(self._entered.device)
            sizes = [len(first) for first, _ in starts]
            together = self._walk(layer + 1, torch.cat([first for first, _ in starts]), self._entered[rows], rows)
            for action, (_, memory), above in zip(candidates, starts, _split(together, sizes), strict=True):
                yield self._completed(Outcome(action, memory, above))
            return
        for action in candidates:
            first, memory = self._start(layer, hidden, action)
            rows = slice(-len(first), None)
            yield self._completed(Outcome(action, memory, self._walk(layer + 1, first, self._entered[rows], rows)))

    def error(self, outcome: Outcome) -> float:
        """Error of an outcome relative to the beginning of the step. Raises :class:`PlainError` if it is not finite."""
        error = self._error(self._baseline, self._compared(outcome.above.output))
        if not math.isfinite(error):
            raise PlainError(
                f"The model's output is not a number at step {self._step + 1}: the checkpoint is damaged or the "
                "precision too low; try another checkpoint or full precision."
            )
        return error

    def accept(self, layer: int, outcome: Outcome) -> None:
        """Accept an outcome; the first branch, if missing in it, is unchanged."""
        path = self._path
        inputs, memories = path.inputs[: layer + 1], [*path.memories[:layer], outcome.memory]
        above = zip(outcome.above.inputs, outcome.above.memories, strict=True)
        for later, (hidden, memory) in enumerate(above, layer + 1):
            inputs.append(torch.cat([path.inputs[later][: len(path.output) - len(hidden)], hidden]))
            memories.append(_merged(path.memories[later], memory))
        self._path = Path(inputs, memories, outcome.above.output)

    def settle(self, layer: int, action: SkipAction) -> None:
        """Store the memory of ``layer`` after ``action`` at this step."""
        if action is SkipAction.TS:
            return
        memory = self._path.memories[layer]
        if action is SkipAction.NONE or self._forecasts:
            residuals = None if action is SkipAction.NONE else memory
            memory = self._settled(memory, self._memories[layer], residuals)
        self._memories[layer] = memory
        self._kept_at[layer] = self._step, self._kept_at[layer][0]

    def finish(self) -> None:
        self.state = self._stepped(self.state, self._step, self._path.output)

    # --- Parts --------------------------------------------------------------------------------------------------------
    def _start(self, layer: int, hidden: Tensor, action: SkipAction) -> tuple[Tensor, LayerMemory]:
        """Output of the tried layer, for branch skipping without the first branch, and its memory."""
        before = self._recalled[layer]
        if action is SkipAction.TS:
            return self._backbone.layer(layer, hidden, self._step, self._run, REUSING, before), before
        # The first branch is unchanged; the others follow by their stored residuals.
        plain, items = self._path.memories[layer], self._items
        following = []
        for now, then in ((plain.attention, before.attention), (plain.feed_forward, before.feed_forward)):
            first = now.kept[:items]
            output = torch.cat([first[None], first + then.kept_residual]).flatten(0, 1)
            following.append(ModuleMemory(output, then.residual))
        attention, feed_forward = following
        others = LayerMemory(ModuleMemory(attention.kept[items:]), ModuleMemory())
        plan = SPARING_ATTENTION
        if self._branch_skip == "both":
            others.feed_forward.output = feed_forward.kept[items:]
            plan = REUSING
        after = self._backbone.layer(layer, hidden[items:], self._step, self._run, plan, others)
        if self._branch_skip == "attention":
            output = torch.cat([plain.feed_forward.kept[:items], others.feed_forward.kept])
            feed_forward = ModuleMemory(output, residual(output, self.calibration_target.branches))
        return after, LayerMemory(attention, feed_forward)

    def _walk(self, first: int, hidden: Tensor, entered: Tensor, rows: slice | Tensor = slice(None)) -> Path:
        """Walk from the input of layer ``first`` to the backbone's output, with ``rows`` of all branches' rows."""
        self._work.check()
        inputs, kept = [], []
        for layer in range(first, self._layers):
            inputs.append(hidden)
            if self._given[layer] is SkipAction.TS:
                memory = self._recalled[layer]
                kept.append(memory)
                plan, memory = REUSING, _chosen(memory, rows)
            else:
                plan, memory = COMPUTING, LayerMemory()
                kept.append(memory)
            hidden = self._backbone.layer(layer, hidden, self._step, self._run, plan, memory)
        return Path(inputs, kept, self._backbone.leave(hidden, entered, self._step, self._run))

    def _completed(self, outcome: Outcome) -> Outcome:
        """The outcome completed by the first branch's output, which branch skipping does not change."""
        output = self._path.output
        missing = len(output) - len(outcome.above.output)
        above = replace(outcome.above, output=torch.cat([output[:missing], outcome.above.output]))
        return replace(outcome, above=above) if missing else outcome

    def _settled(self, memory: LayerMemory, before: LayerMemory, skipped: LayerMemory | None = None) -> LayerMemory:
        """Memory of a fully computed layer: with residuals for branch skipping (those of ``skipped`` if it skipped
        branches), and changes since ``before`` for forecasts."""
        modules = []
        for name in ("attention", "feed_forward"):
            output, earlier = getattr(memory, name).output, getattr(before, name).output
            distance = getattr(skipped, name).residual if skipped is not None else None
            if skipped is None and self.calibration_target.branches > 1:
                distance = residual(output, self.calibration_target.branches)
            change = output - earlier if self._forecasts and earlier is not None else None
            modules.append(ModuleMemory(output, distance, change))
        return LayerMemory(*modules)

    def _stepped(self, state: Tensor, step: int, velocities: Tensor) -> Tensor:
        return self.calibration_target.follow(state, self.calibration_target.guide(velocities), step)


def _chosen(memory: LayerMemory, rows: slice | Tensor) -> LayerMemory:
    return LayerMemory(ModuleMemory(memory.attention.kept[rows]), ModuleMemory(memory.feed_forward.kept[rows]))


def _merged(whole: LayerMemory, part: LayerMemory) -> LayerMemory:
    """``part`` completed by leading rows of ``whole``."""
    modules = []
    for all_rows, last_rows in ((whole.attention, part.attention), (whole.feed_forward, part.feed_forward)):
        missing = len(all_rows.kept) - len(last_rows.kept)
        output = torch.cat([all_rows.kept[:missing], last_rows.kept]) if missing else last_rows.kept
        modules.append(ModuleMemory(output, last_rows.residual))
    return LayerMemory(*modules)


def _split(path: Path, sizes: Sequence[int]) -> list[Path]:
    """Split the joint path of several candidates. Memories that a layer reuses stay whole."""
    inputs = [hidden.split(sizes) for hidden in path.inputs]
    outputs = path.output.split(sizes)
    paths = []
    for number in range(len(sizes)):
        memories = []
        for memory, hidden in zip(path.memories, path.inputs, strict=True):
            own = len(memory.attention.kept) == len(hidden)
            modules = (memory.attention, memory.feed_forward)
            parts = (ModuleMemory(one.kept.split(sizes)[number]) for one in modules)
            memories.append(LayerMemory(*parts) if own else memory)
        paths.append(Path([parts[number] for parts in inputs], memories, outputs[number]))
    return paths
