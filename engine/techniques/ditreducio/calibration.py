"""DiTReducio's three passes: which layer may skip what at which step.

1. *Check*: one plain sampling run measures how diagonal every layer's attention is; the most diagonal cells are marked.
2. *Pre-calibration*: marked cells try temporal skipping.
3. *Calibration*: all other cells try temporal, then branch skipping.

A skip is accepted when the backbone's output changes by less than l/L of the threshold. Within a step, accepted skips
stay in force while later layers are tried; the step is then taken with all of them, so that errors are measured on
the trajectory that will really be run. Source: DiTReducio, section 3.4 and algorithm 1, and the official code where
the paper is silent.

The result is that of running the whole backbone for every trial, but a trial costs only what it can change: layers
below the tried one are not computed again, and neither is the step that follows the trials, since accepted layers
have been computed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from engine.errors import PlainError
from engine.knobs import Values
from engine.models.base import CalibrationObserver
from engine.sampling.guidance import guided_velocity
from engine.sampling.skipping import COMPUTE, LayerDuty, LayerMemory, layer_duty
from engine.techniques.ditreducio.record import (
    CALIBRATION,
    PRE_CALIBRATION,
    CalibrationRecord,
    Trial,
)
from engine.techniques.ditreducio.table import Action, Belonging, StrategyTable


class Backbone(Protocol):
    """What a backbone must offer to be calibrated; ``run`` is what its own ``begin`` returned."""

    layers: int

    def enter(self, x: Tensor, run: object) -> Tensor: ...

    def layer(
        self,
        index: int,
        hidden: Tensor,
        evaluation: int,
        run: object,
        duty: LayerDuty = COMPUTE,
        memory: LayerMemory | None = None,
        look: Callable[[int, str, Tensor], None] | None = None,
    ) -> Tensor: ...

    def leave(self, hidden: Tensor, entered: Tensor, evaluation: int, run: object) -> Tensor: ...

    def attention_map_inputs(self, index: int, attention_input: Tensor) -> tuple[Tensor, Tensor]: ...


def mean_absolute_error(output: Tensor, changed: Tensor) -> float:
    """The paper's error, equation 3."""
    return (output - changed).abs().mean().item()


def relative_error(output: Tensor, changed: Tensor) -> float:
    """The official code's error: each difference over the *signed* larger value, its magnitude clipped at 10."""
    quotient = (output - changed) / (torch.maximum(output, changed) + 1e-6)
    return quotient.abs().clamp(max=10).mean().item()


ERRORS: dict[str, Callable[[Tensor, Tensor], float]] = {
    "mae": mean_absolute_error,
    "relative": relative_error,
}


def diagonal_similarity(query: Tensor, key: Tensor, block: int = 256) -> float:
    """Cosine similarity between the attention map softmax(q kᵀ / √width) and the identity, mean over the items.

    ``query`` and ``key`` are (items, frames, width), unsplit and unrotated as in the official code. The map is formed
    ``block`` rows at a time, so memory grows with the frames, not with their square.
    """
    frames, width = query.shape[-2:]
    on_diagonal = query.new_zeros(len(query), dtype=torch.float64)
    squares = torch.zeros_like(on_diagonal)
    for start in range(0, frames, block):
        rows = query[:, start : start + block] / math.sqrt(width)
        attention = (rows @ key.transpose(1, 2)).softmax(dim=-1)
        on_diagonal += attention.diagonal(offset=start, dim1=1, dim2=2).sum(dim=-1, dtype=torch.float64)
        squares += attention.square().sum(dim=(1, 2), dtype=torch.float64)
    return (on_diagonal / (squares.sqrt() * math.sqrt(frames))).mean().item()


@dataclass(frozen=True)
class Subject:
    """What is calibrated: a backbone in the middle of its work."""

    backbone: Backbone
    run: object
    """What the backbone's ``begin`` returned for the sentence."""
    noise: Tensor
    """(items, frames, bands)"""
    times: np.ndarray
    guidance: float
    branches: int
    belonging: Belonging
    prompt_frames: int = 0
    """Frames in front of the new speech. They are computed like the others and count in the error, as in the official
    code."""

    def guided(self, velocities: Tensor) -> Tensor:
        """The velocity that the sampler follows."""
        return guided_velocity(velocities, self.guidance)


def calibrate(
    subject: Subject,
    knobs: Values,
    observer: CalibrationObserver,
    side_by_side: bool | None = None,
) -> CalibrationRecord:
    """Run the three passes. ``knobs`` are those that the technique declares, checked.

    With ``side_by_side`` both candidates of a cell pass the remaining layers in one batch: that wins where a small
    batch leaves the device idle (a GPU), and loses where twice the work takes twice the time (a CPU), hence the
    default.
    """
    if side_by_side is None:
        side_by_side = subject.noise.device.type != "cpu"
    passes = _Passes(subject, knobs, observer, side_by_side)
    similarities, cut = passes.check()
    marked = similarities >= cut
    pre_table, pre_trials = passes.pre_calibrate(marked)
    table, trials = passes.calibrate(pre_table)
    origin = f"calibrated at threshold {knobs['threshold']:g}"
    return CalibrationRecord(
        StrategyTable(subject.belonging, table, str(knobs["branch_skip"]), origin),
        knobs,
        cut,
        (*pre_trials, *trials),
        similarities,
    )


Rows = tuple[tuple[Action, ...], ...]


class _Passes:
    """The passes over one subject, and what they share."""

    def __init__(
        self,
        subject: Subject,
        knobs: Values,
        observer: CalibrationObserver,
        side_by_side: bool,
    ) -> None:
        self.subject = subject
        self.backbone = subject.backbone
        self.layers, self.steps = subject.backbone.layers, len(subject.times) - 1
        self.threshold = float(knobs["threshold"])
        self.error = ERRORS[str(knobs["metric"])]
        self.guided = knobs["compare"] == "guided"
        self.marked_share = float(knobs["marked"])
        self.branch_skip = str(knobs["branch_skip"])
        self.observer = observer
        self.side_by_side = side_by_side
        # In layer evaluations: check, pre-calibration (an estimate until the marks are known), calibration.
        upper_half = self.layers * (self.layers + 1) // 2
        candidates = len(self._candidates())
        self.total = self.steps * self.layers * 3 + (self.steps - 1) * upper_half * candidates
        self.done = 0

    def check(self) -> tuple[np.ndarray, float]:
        """Pass 1: similarities (layers, steps) and the value from which a cell is marked."""
        self.observer.status("Check: how diagonal is the attention?")
        similarities = np.full((self.layers, self.steps), np.nan)
        for step, state in self._sampling():
            entered = hidden = self.backbone.enter(state, self.subject.run)
            for index in range(self.layers):

                def look(layer: int, name: str, value: Tensor, step: int = step) -> None:
                    if name == "attention_input":
                        conditional = value[: len(self.subject.noise)]
                        similarities[layer, step] = diagonal_similarity(
                            *self.backbone.attention_map_inputs(layer, conditional)
                        )

                hidden = self.backbone.layer(index, hidden, step, self.subject.run, look=look)
                self._worked(1)
            self._take_step(self.backbone.leave(hidden, entered, step, self.subject.run))
            self.observer.similarities(similarities.copy())
        return similarities, float(np.percentile(similarities, 100 - self.marked_share))

    def pre_calibrate(self, marked: np.ndarray) -> tuple[Rows, list[Trial]]:
        """Pass 2: marked cells try temporal skipping. Ends with the last marked step: nothing after it is asked for."""
        table = [[Action.NONE] * self.steps for _ in range(self.layers)]
        trials: list[Trial] = []
        asked = [step for step in range(1, self.steps) if marked[:, step].any()]
        last = asked[-1] if asked else -1
        if last >= 0:
            self.observer.status("Pre-calibration: may the most diagonal layers repeat themselves?")
        plain = [Action.NONE] * self.layers
        for step, memories, state in self._remembering(last + 1):
            candidates = [(Action.TS,) if step and marked[layer, step] else () for layer in range(self.layers)]
            decided = self._try_step(step, state, memories, plain, candidates, PRE_CALIBRATION, trials)
            for layer, action in enumerate(decided):
                table[layer][step] = action
        return tuple(map(tuple, table)), trials

    def calibrate(self, pre_table: Rows) -> tuple[Rows, list[Trial]]:
        """Pass 3: all cells that the second pass did not decide try every candidate."""
        self.observer.status("Calibration: what may the other layers skip?")
        table = [[Action.NONE] * self.steps for _ in range(self.layers)]
        trials: list[Trial] = []
        for step, memories, state in self._remembering(self.steps):
            given = [pre_table[layer][step] for layer in range(self.layers)]
            candidates = [
                self._candidates() if step and given[layer] is Action.NONE else () for layer in range(self.layers)
            ]
            decided = self._try_step(step, state, memories, given, candidates, CALIBRATION, trials)
            for layer, action in enumerate(decided):
                table[layer][step] = action
        return tuple(map(tuple, table)), trials

    def _candidates(self) -> tuple[Action, ...]:
        return (Action.TS, Action.BS) if self.subject.branches > 1 else (Action.TS,)

    def _sampling(self) -> Iterator[tuple[int, Tensor]]:
        """Step after step of a sampling run; the loop's body hands each velocity to :meth:`_take_step`."""
        self._state = self.subject.noise
        for step in range(self.steps):
            self._step = step
            yield step, self._state

    def _take_step(self, velocities: Tensor) -> None:
        length = float(self.subject.times[self._step + 1] - self.subject.times[self._step])
        self._state = self._state + length * self.subject.guided(velocities)

    def _remembering(self, until: int) -> Iterator[tuple[int, list[LayerMemory], Tensor]]:
        memories = [LayerMemory() for _ in range(self.layers)]
        for step, state in self._sampling():
            if step >= until:
                return
            yield step, memories, state

    def _try_step(
        self,
        step: int,
        state: Tensor,
        memories: list[LayerMemory],
        given: Sequence[Action],
        candidates: Sequence[Sequence[Action]],
        phase: str,
        trials: list[Trial],
    ) -> list[Action]:
        """Decide every layer at one step, then take the step with what was decided.

        ``given`` is in force from the start; a layer with ``candidates`` keeps the first that passes. ``memories``
        end up as the decided actions leave them.
        """
        run = self.subject.run
        entered = self.backbone.enter(state, run)
        # The baseline: the whole backbone with what is given. What each layer would then remember is kept aside.
        inputs, remembered = [entered], []
        for layer in range(self.layers):
            memory = memories[layer].copy()
            inputs.append(self._layer(layer, inputs[-1], step, given[layer], memory))
            remembered.append(memory)
        output = self.backbone.leave(inputs[-1], entered, step, run)
        compared = self._compared(output)

        decided = list(given)
        hidden, diverged = entered, False
        for layer in range(self.layers):
            accepted = None
            outcomes = self._outcomes(layer, hidden, entered, step, given, candidates[layer], memories)
            for action, after, memory, changed in outcomes:
                error = self.error(compared, changed)
                if not math.isfinite(error):
                    raise PlainError(
                        f"The model's output is not a number at step {step + 1}: the checkpoint is damaged or the "
                        "precision too low; try another checkpoint or full precision."
                    )
                passes = error < (layer + 1) / self.layers * self.threshold
                trial = Trial(phase, step, layer, action, error, passes)
                trials.append(trial)
                self.observer.trial(trial)
                if passes:
                    accepted = action, after, memory
                    break
            if accepted is not None:
                decided[layer], hidden, memories[layer] = accepted
                diverged = True
            elif diverged:
                memory = memories[layer].copy()
                hidden = self._layer(layer, hidden, step, given[layer], memory)
                memories[layer] = memory
            else:
                hidden, memories[layer] = inputs[layer + 1], remembered[layer]
            self._worked(max(1, len(candidates[layer]) * (self.layers - layer)))
        self._take_step(self.backbone.leave(hidden, entered, step, run) if diverged else output)
        return decided

    def _outcomes(
        self,
        layer: int,
        hidden: Tensor,
        entered: Tensor,
        step: int,
        given: Sequence[Action],
        candidates: Sequence[Action],
        memories: list[LayerMemory],
    ) -> Iterator[tuple[Action, Tensor, LayerMemory, Tensor]]:
        """For each candidate of one layer: the layer's output, its memory, and what the whole backbone then puts
        out."""
        if self.side_by_side and len(candidates) > 1:
            afters, kept = [], []
            for action in candidates:
                kept.append(memories[layer].copy())
                afters.append(self._layer(layer, hidden, step, action, kept[-1]))
            entries = torch.cat([entered] * len(candidates))
            outputs = self._finish(layer, torch.cat(afters), entries, step, given, memories).chunk(len(candidates))
            for action, after, memory, output in zip(candidates, afters, kept, outputs, strict=True):
                yield action, after, memory, self._compared(output)
            return
        for action in candidates:
            memory = memories[layer].copy()
            after = self._layer(layer, hidden, step, action, memory)
            yield (
                action,
                after,
                memory,
                self._compared(self._finish(layer, after, entered, step, given, memories)),
            )

    def _finish(
        self,
        layer: int,
        hidden: Tensor,
        entered: Tensor,
        step: int,
        given: Sequence[Action],
        memories: list[LayerMemory],
    ) -> Tensor:
        """From the output of ``layer`` to the backbone's output; memories are read, not written."""
        self.observer.check()
        for later in range(layer + 1, self.layers):
            duty = layer_duty(given[later], self.branch_skip, keep=False)
            hidden = self.backbone.layer(later, hidden, step, self.subject.run, duty, memories[later])
        return self.backbone.leave(hidden, entered, step, self.subject.run)

    def _layer(self, layer: int, hidden: Tensor, step: int, action: Action, memory: LayerMemory) -> Tensor:
        duty = layer_duty(action, self.branch_skip, keep=True)
        return self.backbone.layer(layer, hidden, step, self.subject.run, duty, memory)

    def _compared(self, output: Tensor) -> Tensor:
        return self.subject.guided(output) if self.guided else output

    def _worked(self, layer_evaluations: int) -> None:
        self.observer.check()
        self.done = min(self.done + layer_evaluations, self.total)
        self.observer.progress(self.done, self.total)
