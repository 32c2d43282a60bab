"""Fine-tuning of a flow-matching model so that one branch replaces the two of classifier-free guidance.

*Model guidance* (Tang et al., arXiv 2502.12154; for F5-TTS Liu et al., arXiv 2504.20334): the target x₁ − x₀ becomes u
+ w·sg(v_c − v_u). The paper prints a minus, which would weaken guidance; the sign here is that of the first authors'
code, whose fixed point is v_c = v_u + Δ/(1 − w): the field under guidance of g = w/(1 − w). For w ≥ 1 there is none.

*Distillation* is not the papers' method: the target is v_c + g·(v_c − v_u) of the frozen initial model.

Flow times are half uniform and half warped towards the noise (ours), or t ~ U(0, 1) as published; both are stratified
over the items of a step. Without the stop-gradient sg (the paper's ablation) the loss is differentiated by the
difference of the branches, too.

Dropped conditions are drawn once per batch, as in the official code, at the paper's rates: text and speech together
0.2, and independently speech alone 0.3. A batch without both keeps the plain target, which trains v_u. There is no
dropout, so both forward passes are consistent. Distillation drops nothing: the frozen model knows both branches, and
only the trained branch with text and speech will run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from paretone.errors import SettingError, TrainingError
from paretone.models.catalogue import entry
from paretone.models.files.trained_weights import WEIGHT_SETS, save_in_half
from paretone.observer import may_stop
from paretone.paths import own_place
from paretone.reading import shown
from paretone.setting.knobs import Values
from paretone.techniques.base import JobTask
from paretone.techniques.guidance_free import (
    METHODS,
    SWAYED,
    TIMES,
    UNIFORM,
    GuidanceFreeRequest,
    Targets,
    why_not_trained,
)
from paretone.training.fine_tuning import (
    FineTuningOptions,
    FineTuningRecipe,
    SubjectOptions,
    own_seed,
    rates_of,
    subject_of,
)
from paretone.training.flow_matching import FlowMatchingOptions, span_error
from paretone.training.flow_subjects import Subject
from paretone.training.learner import Rates
from paretone.training.natural_corpus import CorpusOptions
from paretone.training.processes import Processes
from paretone.training.requests import Follower, Trained
from paretone.training.runs import KeptStages, Reporting, begin, complete, use_threads
from paretone.training.session import Intervals, require_same_choices
from paretone.wording import part_of

MODEL_GUIDANCE, DISTILLATION = METHODS
VALIDATION_TIMES = (0.05, 0.2, 0.4, 0.6, 0.8)


def equivalent_guidance(weight: float) -> float:
    """Strength g of guidance, in the official code's definition, that training with ``weight`` w replaces."""
    return weight / (1 - weight)


@dataclass(frozen=True)
class GuidanceFreeOptions(Targets, FineTuningOptions):
    methods: ClassVar[tuple[str, ...]] = METHODS

    weight: float
    _: KW_ONLY
    learning_rate: float = 1e-5
    matrix_rate: float | None = None
    hold: float = 0.5
    validation_items: int = 16
    frames: int = 1_800
    """Mel frames per step and process, padding included."""
    joined_share: float = 0.5
    """Share of items with two recordings of one voice, if the model can read those."""
    objective: FlowMatchingOptions = field(
        default_factory=lambda: FlowMatchingOptions(drop_audio=0.3 * (1 - 0.2), drop_both=0.2)
    )

    def __post_init__(self) -> None:
        if not 0 < self.weight < 1:
            why = (
                "from 1 on the model would chase a target that grows with it, and its gradients explode"
                if self.weight >= 1
                else "at 0 it would be trained as before"
            )
            raise SettingError(f"The weight w must lie between 0 and 1, not be {self.weight:g}: {why}.")
        super().__post_init__()
        if not 0 < self.latest <= 1:
            raise SettingError(f"The latest guided time must lie above 0 and up to 1, not be {self.latest:g}.")
        if not 0 <= self.weight_warm_up <= 1:
            raise SettingError(f"The warm-up of w must be a share from 0 to 1, not {self.weight_warm_up:g}.")
        if self.warm_up < 0:
            raise SettingError(f"The learning rate must rise over 0 steps or more, not over {self.warm_up}.")
        if not self.stop_gradient and (self.method != MODEL_GUIDANCE or self.average_difference):
            raise SettingError(
                "Without the stop gradient, the difference of the branches must be that of the trained model, not of a "
                f"frozen or averaged one; keep the stop gradient, or use {MODEL_GUIDANCE} without the average."
            )

    @property
    def dropping(self) -> FlowMatchingOptions:
        """The objective; distillation drops no conditions."""
        kept = self.method == DISTILLATION
        return replace(self.objective, drop_audio=0.0, drop_both=0.0) if kept else self.objective

    @property
    def choices(self) -> dict[str, str]:
        """Choices that the weights' metadata record and a resumed run must share."""
        return {
            "times": UNIFORM if self.objective.uniform_times == 1 else SWAYED,
            "stop_gradient": str(self.stop_gradient).lower(),
            "weight_warm_up": f"{self.weight_warm_up:g}",
            "warm_up": str(self.warm_up),
        }


class GuidanceFree(FineTuningRecipe[GuidanceFreeOptions, nn.Module]):
    def __init__(
        self, subject: Subject[Any, Any], base: str, origin: str, processes: Processes, options: GuidanceFreeOptions
    ) -> None:
        """``subject`` holds the model and its speech; ``base`` is the fingerprint of its checkpoint ``origin``."""
        self.name = f"cfg-free {options.method} w={options.weight:.6g}"
        self.origin = origin
        super().__init__(subject, base, processes, options)

    def describe(self) -> dict[str, Any]:
        return {**super().describe(), "equivalent_guidance": equivalent_guidance(self.options.weight)}

    def next_loss(self, progress: float) -> tuple[Tensor, dict[str, Tensor]]:
        problem = self.subject.next(self.device)
        velocity = self.call(problem).float()
        loss = span_error(velocity, self.target(problem, velocity, progress), problem.span)
        return loss, {"loss": loss.detach()}

    def _predicted(self, model: nn.Module, problem: Any) -> Tensor:
        return self.subject.field(model, problem)(problem.noised, problem.times)

    def target(self, problem: Any, conditional: Tensor, progress: float) -> Tensor:
        """Target of the velocity, (B, frames, bands), given the ``conditional`` velocity of the model; a constant,
        unless there is no stop gradient."""
        options = self.options
        rising = min(1.0, progress / options.weight_warm_up) if options.weight_warm_up else 1.0
        with torch.set_grad_enabled(not options.stop_gradient):
            if options.method == DISTILLATION:
                learnt = self._velocity(self.teacher, problem)
                strength = equivalent_guidance(rising * options.weight)
                unconditional = self._velocity(self.teacher, self.subject.bare(problem))
                return learnt + self._gated(strength, problem) * (learnt - unconditional)
            if problem.drops_text:
                return problem.target
            other = self.model
            if options.average_difference:
                other = self.average.module
                conditional = self._velocity(other, problem)
            difference = conditional - self._velocity(other, self.subject.bare(problem))
            return problem.target + self._gated(rising * options.weight, problem) * difference

    def _gated(self, weight: float, problem: Any) -> Tensor:
        return weight * (problem.times <= self.options.latest).float()[:, None, None]

    def _velocity(self, model: nn.Module, problem: Any) -> Tensor:
        """Velocity of ``model`` in float32, because differences of velocities are small."""
        with self.processes.accelerator.autocast():
            return self._predicted(model, problem).float()

    @torch.no_grad()
    def validate(self) -> dict[str, float]:
        """Error of the averaged model's one branch relative to the guided velocity of the initial model. ``guided
        t=…``: mean squared error by time. ``gap``: their sum as a share of its value before training; other changes by
        these recordings count, too. ``learnt``: movement of the velocity along the effect of guidance, as a share of
        that effect, mean over times; 0 at the start, 1 at the goal."""
        found: dict[float, list[tuple[float, float, float]]] = {time: [] for time in VALIDATION_TIMES}
        for one in self._validation_problems:
            may_stop()
            velocity, span = self._predicted(self.average.module, one.problem), one.problem.span
            moved, wanted = (velocity - one.conditional)[span], (one.target - one.conditional)[span]
            means = (moved - wanted).square().mean(), wanted.square().mean(), (moved * wanted).mean()
            found[one.time].append((float(means[0]), float(means[1]), float(means[2])))
        # By time: the error, the squared effect of guidance, and the movement along it.
        errors, goals, progress = np.array([np.mean(rows, axis=0) for rows in found.values()]).T
        figures = {f"guided t={time:.2f}": float(error) for time, error in zip(found, errors, strict=True)}
        return figures | {"gap": float(errors.sum() / goals.sum()), "learnt": float((progress / goals).mean())}

    @cached_property
    @torch.no_grad()
    def _validation_problems(self) -> list[_ValidationProblem]:
        strength = equivalent_guidance(self.options.weight)
        problems = []
        for time in VALIDATION_TIMES:
            for problem in self.subject.held_out(self.options.validation_items, self.device, time):
                may_stop()
                conditional = self._predicted(self.teacher, problem)
                unconditional = self._predicted(self.teacher, self.subject.bare(problem))
                target = conditional + strength * (conditional - unconditional)
                problems.append(_ValidationProblem(time, problem, conditional, target))
        return problems

    def state(self) -> dict[str, Any]:
        return {**super().state(), "choices": self.options.choices}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Raises :class:`TrainingError` also for other choices."""
        # Earlier runs had no choice of these two.
        earlier = {"times": SWAYED, "stop_gradient": "true"} | dict(state.get("choices", {}))
        require_same_choices(earlier, self.options.choices)
        super().restore(state)

    def save(self, path: Path, stage: float | None = None) -> None:
        """Write the averaged weights, officially laid out; ``stage``: the training goes on. Raises :class:`OSError`."""
        said = self.metadata if stage is None else {**self.metadata, "stage": "true"}
        save_in_half(path, self.subject.official(self.average.module.state_dict(), self.steps), said)

    @property
    def file_name(self) -> str:
        return f"w-{self.options.weight:.2f}.safetensors"

    @property
    def metadata(self) -> dict[str, str]:
        """Metadata by which a CFG-free checkpoint is recognised."""
        weight = self.options.weight
        return {
            "cfg_free": "true",
            "weight": f"{weight:.6g}",
            "equivalent_guidance": f"{equivalent_guidance(weight):.6g}",
            "method": self.options.method,
            "base": self.base,
            "steps": str(self.steps),
            **self.options.choices,
        }

    @property
    def result(self) -> Values:
        strength = equivalent_guidance(self.options.weight)
        return Values(weight=self.options.weight, equivalent_guidance=strength, method=self.options.method)

    def summary(self, validation: Mapping[str, float]) -> str:
        weight = self.options.weight
        learnt = f"; one branch has learned {part_of(validation['learnt'])} of it." if validation else ""
        return f"w = {weight:.2f} equals guidance {equivalent_guidance(weight):.2f}{learnt}"


@dataclass(frozen=True)
class _ValidationProblem:
    """A held-out batch at a time, with the initial model's velocities without and with guidance."""

    time: float
    problem: Any
    conditional: Tensor
    target: Tensor


SMALL_RATES, USUAL_RATES = Rates(None, 3e-4), Rates(None, 1e-5)
"""Learning rates: measured on the bundled model; the official one for fine-tuning the released models."""
INTERVALS = Intervals(validation_steps=100, validates_first=True)


def options_of(request: GuidanceFreeRequest) -> GuidanceFreeOptions:
    """Training options of ``request``; the learning rate may depend on the model. Raises :class:`SettingError`."""
    if request.times not in TIMES:
        raise SettingError(f"There are no flow times {shown(request.times)}; known: {', '.join(TIMES)}.")
    if any(one < 1 for one in request.stages):
        raise SettingError(f"Stages are numbers of steps from 1, not {min(request.stages)}.")
    chosen = GuidanceFreeOptions(
        request.weight,
        **{one.name: getattr(request, one.name) for one in fields(Targets)},
        matrix_rate=request.matrix_rate,
        frames=request.frames,
        seed=request.seed,
        half_precision=request.half_precision,
        rate_scale=request.rate_scale,
    )
    share = 1.0 if request.times == UNIFORM else chosen.objective.uniform_times
    return replace(chosen, objective=replace(chosen.objective, uniform_times=share))


def fine_tune(
    request: GuidanceFreeRequest,
    options: GuidanceFreeOptions,
    follower: Follower,
    intervals: Intervals = INTERVALS,
    corpus: CorpusOptions = CorpusOptions(),
) -> Trained:
    """Train under ``options`` and export the result. A bundled model without given speech learns from ``corpus``, the
    kind of speech that it was trained on. Raises :class:`paretone.errors.PlainError`, and :class:`Cancelled` after a
    checkpoint."""
    chosen = entry(request.model)
    if reason := why_not_trained(chosen):
        raise TrainingError(reason)
    run = begin(request, chosen, follower)
    strength, seed = Values(guidance=equivalent_guidance(options.weight)), own_seed(options.seed, run.processes)
    wanted = SubjectOptions(strength, corpus, options.frames, seed, options.dropping, options.joined_share)
    learning = subject_of(run, wanted)
    subject, base = learning.subject, learning.base
    rates = rates_of(request, subject.model.parameters(), SMALL_RATES, USUAL_RATES)
    recipe = GuidanceFree(subject, base, learning.origin, run.processes, replace(options, learning_rate=rates.others))
    folder = own_place(request.model) / WEIGHT_SETS
    stages = KeptStages(
        request.stages,
        lambda milestone: milestone.step,
        run.target(folder, recipe.file_name),
        "steps",
        recipe.save,
        Path(request.work),
        run.follower,
    )
    return complete(recipe, replace(run, follower=stages), folder, intervals)


def train(task: JobTask) -> Trained:
    use_threads(task.request)
    return fine_tune(task.request, options_of(task.request), Reporting(task.observer))
