"""DiTReducio's three passes: which layer may skip what at which step.

1. *Check*: one plain sampling run measures how diagonal every layer's attention is; the most diagonal cells are marked.
2. *Pre-calibration*: marked cells try temporal skipping.
3. *Calibration*: all other cells try temporal, then branch skipping.

A skip is accepted when the backbone's output changes by less than l/L of the threshold. Within a step, accepted skips
stay in force while later layers are tried; the step is then taken with all of them, so that errors are measured on
the trajectory that will really be run. Source: DiTReducio, section 3.4 and algorithm 1, and the official code where
the paper is silent.

The result is that of running the whole backbone for every trial, and again to take the step. What a trial costs is only
what it can change, though:

* layers below the tried one are not computed again;
* branches do not see each other, so a skipped branch leaves the first one as it was: only the others are computed;
* an accepted trial has already computed the layers above it, which later trials and the step itself start from;
* as long as nothing has been accepted, pre-calibration is on the trajectory of the check pass, whose states are kept.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from engine.errors import PlainError
from engine.knobs import Values
from engine.models.base import CalibrationObserver
from engine.sampling.skipping import COMPUTE, Duty, LayerDuty, LayerMemory, ModuleMemory, residual
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
    guide: Callable[[Tensor], Tensor]
    """From the velocities of all branches, branch-major, to the velocity that the sampler follows."""
    follow: Callable[[Tensor, Tensor, int], Tensor]
    """The sampler's step: from a state, the velocity followed and the step's number to the next state. Equal arguments
    give equal states, always: a stochastic sampler replays its noise."""
    branches: int
    belonging: Belonging
    prompt_frames: int = 0
    """Frames in front of the new speech. They are computed like the others and count in the error, as in the official
    code."""


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

COMPUTING = LayerDuty(Duty(keep_output=True), Duty(keep_output=True))
REUSING = LayerDuty(Duty(Action.TS), Duty(Action.TS))
SPARING_ATTENTION = LayerDuty(Duty(Action.TS), Duty(keep_output=True))
"""The attention's output is known, the feed-forward is computed."""


@dataclass
class _Path:
    """A way through the layers at one step: what goes into each, what each remembers, and what comes out."""

    inputs: list[Tensor]
    memories: list[LayerMemory]
    output: Tensor


@dataclass(frozen=True)
class _Outcome:
    """A candidate at one layer: what the layer then remembers, and the path above it."""

    action: Action
    memory: LayerMemory
    above: _Path


class _Passes:
    """The passes over one subject, and what they share."""

    def __init__(self, subject: Subject, knobs: Values, observer: CalibrationObserver, side_by_side: bool) -> None:
        self.subject = subject
        self.backbone = subject.backbone
        self.layers, self.steps = subject.backbone.layers, len(subject.times) - 1
        self.items = len(subject.noise)
        self.threshold = float(knobs["threshold"])
        self.error = ERRORS[str(knobs["metric"])]
        self.guided = knobs["compare"] == "guided"
        self.marked_share = float(knobs["marked"])
        self.branch_skip = str(knobs["branch_skip"])
        self.candidates = (Action.TS, Action.BS) if subject.branches > 1 else (Action.TS,)
        self.observer = observer
        self.side_by_side = side_by_side
        self.states: list[Tensor] = []
        """The state before each step of the check pass, and after the last."""
        self.first_memories: list[LayerMemory] = []
        """What the layers remember after step 0, which is the same in all passes."""
        # In layer evaluations; a generous estimate, for what is accepted is not known beforehand.
        self.total = 3 * self.steps * self.layers + (self.steps - 1) * self.layers * (self.layers + 1)
        self.done = 0

    def check(self) -> tuple[np.ndarray, float]:
        """Pass 1: similarities (layers, steps) and the value from which a cell is marked."""
        self.observer.status("Check: how diagonal is the attention?")
        similarities = np.full((self.layers, self.steps), np.nan)
        self.states = [self.subject.noise]
        for step in range(self.steps):

            def look(layer: int, name: str, value: Tensor, step: int = step) -> None:
                if name == "attention_input":
                    inputs = self.backbone.attention_map_inputs(layer, value[: self.items])
                    similarities[layer, step] = diagonal_similarity(*inputs)

            entered = hidden = self.backbone.enter(self.states[-1], self.subject.run)
            for layer in range(self.layers):
                memory = LayerMemory()
                duty = COMPUTE if step else COMPUTING
                hidden = self.backbone.layer(layer, hidden, step, self.subject.run, duty, memory, look)
                if step == 0:
                    self.first_memories.append(self._settled(memory))
                self._worked(1)
            output = self.backbone.leave(hidden, entered, step, self.subject.run)
            self.states.append(self._stepped(self.states[-1], step, output))
            self.observer.similarities(similarities.copy())
        return similarities, float(np.percentile(similarities, 100 - self.marked_share))

    def pre_calibrate(self, marked: np.ndarray) -> tuple[Rows, list[Trial]]:
        """Pass 2: marked cells try temporal skipping. Ends with the last marked step: nothing after it is asked for."""
        table = [[Action.NONE] * self.steps for _ in range(self.layers)]
        trials: list[Trial] = []
        asked = [bool(marked[:, step].any()) for step in range(1, self.steps)]
        last = max((step for step, any_marked in enumerate(asked, 1) if any_marked), default=0)
        if last:
            self.observer.status("Pre-calibration: may the most diagonal layers repeat themselves?")
        nothing = [Action.NONE] * self.layers
        memories, state, diverged = list(self.first_memories), self.states[1], False
        for step in range(1, last + 1):
            if not diverged and not asked[step - 1]:
                if asked[step]:  # The next step may repeat what this one computes.
                    entered = self.backbone.enter(state, self.subject.run)
                    path = self._walk(0, entered, entered, step, nothing, memories)
                    memories = [self._settled(memory) for memory in path.memories]
                    self._worked(self.layers)
                state = self.states[step + 1]
                continue
            candidates = [(Action.TS,) if marked[layer, step] else () for layer in range(self.layers)]
            decided, state = self._try_step(step, state, memories, nothing, candidates, PRE_CALIBRATION, trials)
            diverged = diverged or Action.TS in decided
            for layer, action in enumerate(decided):
                table[layer][step] = action
        self.done = max(self.done, 2 * self.steps * self.layers)
        return tuple(map(tuple, table)), trials

    def calibrate(self, pre_table: Rows) -> tuple[Rows, list[Trial]]:
        """Pass 3: all cells that the second pass did not decide try every candidate."""
        self.observer.status("Calibration: what may the other layers skip?")
        table = [[Action.NONE] * self.steps for _ in range(self.layers)]
        trials: list[Trial] = []
        memories, state = list(self.first_memories), self.states[1]
        for step in range(1, self.steps):
            given = [row[step] for row in pre_table]
            candidates = [self.candidates if action is Action.NONE else () for action in given]
            decided, state = self._try_step(step, state, memories, given, candidates, CALIBRATION, trials)
            for layer, action in enumerate(decided):
                table[layer][step] = action
        return tuple(map(tuple, table)), trials

    def _try_step(
        self,
        step: int,
        state: Tensor,
        memories: list[LayerMemory],
        given: Sequence[Action],
        candidates: Sequence[Sequence[Action]],
        phase: str,
        trials: list[Trial],
    ) -> tuple[list[Action], Tensor]:
        """Decide every layer at one step: the actions, and the state after the step with them.

        ``given`` is in force from the start; a layer with ``candidates`` keeps the first that passes. ``memories`` end
        up as the decided actions leave them.
        """
        entered = self.backbone.enter(state, self.subject.run)
        path = self._walk(0, entered, entered, step, given, memories)
        self._worked(self.layers)
        baseline = self._compared(path.output)
        decided = list(given)
        for layer in range(self.layers):
            for outcome in self._outcomes(layer, path, entered, step, given, candidates[layer], memories):
                error = self.error(baseline, self._compared(outcome.above.output))
                if not math.isfinite(error):
                    raise PlainError(
                        f"The model's output is not a number at step {step + 1}: the checkpoint is damaged or the "
                        "precision too low; try another checkpoint or full precision."
                    )
                passes = error < (layer + 1) / self.layers * self.threshold
                trial = Trial(phase, step, layer, outcome.action, error, passes)
                trials.append(trial)
                self.observer.trial(trial)
                if passes:
                    decided[layer] = outcome.action
                    path = self._accepted(layer, path, outcome)
                    break
            if decided[layer] is Action.NONE:
                memories[layer] = self._settled(path.memories[layer])
            else:
                memories[layer] = path.memories[layer]
            self._worked(len(candidates[layer]) * (self.layers - layer))
        return decided, self._stepped(state, step, path.output)

    def _outcomes(
        self,
        layer: int,
        path: _Path,
        entered: Tensor,
        step: int,
        given: Sequence[Action],
        candidates: Sequence[Action],
        memories: list[LayerMemory],
    ) -> Iterator[_Outcome]:
        """What each candidate of one layer comes to. A branch-skipping candidate's path lacks the first branch."""
        if self.side_by_side and len(candidates) > 1:
            starts = [self._start(layer, path.inputs[layer], step, action, path, memories) for action in candidates]
            rows = torch.cat([torch.arange(len(entered))[-len(hidden) :] for hidden, _ in starts]).to(entered.device)
            sizes = [len(hidden) for hidden, _ in starts]
            hiddens = torch.cat([hidden for hidden, _ in starts])
            both = self._walk(layer + 1, hiddens, entered[rows], step, given, memories, rows)
            for action, (_, memory), above in zip(candidates, starts, _split(both, sizes), strict=True):
                yield self._completed(_Outcome(action, memory, above), path)
            return
        for action in candidates:
            hidden, memory = self._start(layer, path.inputs[layer], step, action, path, memories)
            rows = slice(-len(hidden), None)
            above = self._walk(layer + 1, hidden, entered[rows], step, given, memories, rows)
            yield self._completed(_Outcome(action, memory, above), path)

    def _start(
        self, layer: int, hidden: Tensor, step: int, action: Action, path: _Path, memories: list[LayerMemory]
    ) -> tuple[Tensor, LayerMemory]:
        """The tried layer itself: its output, for branch skipping without the first branch, and what it remembers."""
        before = memories[layer]
        if action is Action.TS:
            return self.backbone.layer(layer, hidden, step, self.subject.run, REUSING, before), before
        # The first branch does what it does anyway; the others follow it at the distance that was remembered.
        plain = path.memories[layer]
        attention, feed_forward = (
            ModuleMemory(_following(now.output[: self.items], then.residual), then.residual)
            for now, then in (
                (plain.attention, before.attention),
                (plain.feed_forward, before.feed_forward),
            )
        )
        others = LayerMemory(ModuleMemory(attention.output[self.items :]), ModuleMemory())
        duty = SPARING_ATTENTION
        if self.branch_skip == "both":
            others.feed_forward.output = feed_forward.output[self.items :]
            duty = REUSING
        after = self.backbone.layer(layer, hidden[self.items :], step, self.subject.run, duty, others)
        if self.branch_skip == "attention":
            output = torch.cat([plain.feed_forward.output[: self.items], others.feed_forward.output])
            feed_forward = ModuleMemory(output, residual(output, self.subject.branches))
        return after, LayerMemory(attention, feed_forward)

    def _walk(
        self,
        first: int,
        hidden: Tensor,
        entered: Tensor,
        step: int,
        given: Sequence[Action],
        memories: list[LayerMemory],
        rows: slice | Tensor = slice(None),
    ) -> _Path:
        """From the input of layer ``first`` to the backbone's output. ``rows`` are these among all branches' rows.
        ``memories`` are read, not written."""
        self.observer.check()
        inputs, kept = [], []
        for layer in range(first, self.layers):
            inputs.append(hidden)
            if given[layer] is Action.TS:
                kept.append(memories[layer])
                hidden = self.backbone.layer(
                    layer, hidden, step, self.subject.run, REUSING, _chosen(memories[layer], rows)
                )
            else:
                kept.append(LayerMemory())
                hidden = self.backbone.layer(layer, hidden, step, self.subject.run, COMPUTING, kept[-1])
        return _Path(inputs, kept, self.backbone.leave(hidden, entered, step, self.subject.run))

    def _completed(self, outcome: _Outcome, path: _Path) -> _Outcome:
        """The outcome with the first branch's output, which branch skipping does not change."""
        missing = len(path.output) - len(outcome.above.output)
        above = replace(outcome.above, output=torch.cat([path.output[:missing], outcome.above.output]))
        return replace(outcome, above=above) if missing else outcome

    def _accepted(self, layer: int, path: _Path, outcome: _Outcome) -> _Path:
        """The path with an outcome in it; where the outcome lacks the first branch, it is the path's."""
        inputs, memories = path.inputs[: layer + 1], [*path.memories[:layer], outcome.memory]
        for later, (hidden, memory) in enumerate(
            zip(outcome.above.inputs, outcome.above.memories, strict=True), layer + 1
        ):
            inputs.append(torch.cat([path.inputs[later][: len(path.output) - len(hidden)], hidden]))
            memories.append(_merged(path.memories[later], memory))
        return _Path(inputs, memories, outcome.above.output)

    def _settled(self, memory: LayerMemory) -> LayerMemory:
        """The memory of a layer that computed everything, with the residuals that branch skipping starts from."""
        if self.subject.branches == 1:
            return memory
        return LayerMemory(
            *(
                ModuleMemory(module.output, residual(module.output, self.subject.branches))
                for module in (memory.attention, memory.feed_forward)
            )
        )

    def _stepped(self, state: Tensor, step: int, velocities: Tensor) -> Tensor:
        return self.subject.follow(state, self.subject.guide(velocities), step)

    def _compared(self, output: Tensor) -> Tensor:
        return self.subject.guide(output) if self.guided else output

    def _worked(self, layer_evaluations: int) -> None:
        self.observer.check()
        self.done = min(self.done + layer_evaluations, self.total)
        self.observer.progress(self.done, self.total)


def _following(first: Tensor, distances: Tensor) -> Tensor:
    """All branches from the first one's output and the others' residuals."""
    return torch.cat([first[None], first + distances]).flatten(0, 1)


def _chosen(memory: LayerMemory, rows: slice | Tensor) -> LayerMemory:
    return LayerMemory(ModuleMemory(memory.attention.output[rows]), ModuleMemory(memory.feed_forward.output[rows]))


def _merged(whole: LayerMemory, part: LayerMemory) -> LayerMemory:
    """``part`` may lack the leading rows of ``whole``."""
    modules = []
    for all_rows, last_rows in ((whole.attention, part.attention), (whole.feed_forward, part.feed_forward)):
        missing = len(all_rows.output) - len(last_rows.output)
        output = torch.cat([all_rows.output[:missing], last_rows.output]) if missing else last_rows.output
        modules.append(ModuleMemory(output, last_rows.residual))
    return LayerMemory(*modules)


def _split(path: _Path, sizes: Sequence[int]) -> list[_Path]:
    """The paths of candidates that walked side by side. What reuses its memory keeps it whole."""
    inputs = [hidden.split(sizes) for hidden in path.inputs]
    outputs = path.output.split(sizes)
    paths = []
    for number in range(len(sizes)):
        memories = []
        for memory, hidden in zip(path.memories, path.inputs, strict=True):
            own = len(memory.attention.output) == len(hidden)
            memories.append(
                LayerMemory(
                    ModuleMemory(memory.attention.output.split(sizes)[number]),
                    ModuleMemory(memory.feed_forward.output.split(sizes)[number]),
                )
                if own
                else memory
            )
        paths.append(_Path([parts[number] for parts in inputs], memories, outputs[number]))
    return paths
