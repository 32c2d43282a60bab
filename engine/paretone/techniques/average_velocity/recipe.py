"""Fine-tuning of a flow model so that one evaluation carries the state over an interval of time.

*Displacement* (IntMeanFlow, arXiv 2510.07979): the target is the displacement of the frozen model over the interval in
a few Euler steps, guidance included, so that the trained model runs one branch. The intervals are those between the
evaluations of a synthesis with one to four, on the model's own grid. They start on the straight path from noise to
speech or, which is ours, at a state of the averaged model itself, as in a synthesis.

*MeanFlow* (arXiv 2505.13447) learns from speech alone, with a Jacobian-vector product and in full precision. Guidance
enters as in the paper, through the velocity of that product, but from the frozen model.

The trained model is the frozen one with one more embedding, initially zero.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

import torch
from torch import Tensor, nn

from paretone.errors import SettingError, TrainingError
from paretone.models.base import IntervalWeights
from paretone.models.catalogue import entry
from paretone.models.cosyvoice2.token_to_mel import own_names
from paretone.models.declaration import Model
from paretone.models.files import trained_weights
from paretone.models.files.checkpoints import metadata_of, read_float_weights
from paretone.observer import may_stop
from paretone.paths import own_place
from paretone.sampling.flow import sampling_grid
from paretone.setting.knobs import Values, checked
from paretone.techniques.average_velocity import (
    FEWEST_STEPS,
    GUIDANCE,
    HIGHEST_TEMPERATURE,
    MEAN_FLOW,
    METHODS,
    MOST_EVALUATIONS,
    AverageVelocityRequest,
    Targets,
    why_not_trained,
)
from paretone.techniques.base import JobTask
from paretone.training.fine_tuning import (
    FineTuningOptions,
    FineTuningRecipe,
    SubjectOptions,
    own_seed,
    rates_of,
    subject_of,
)
from paretone.training.flow_matching import Field, span_error
from paretone.training.flow_subjects import Problem, Subject, state_at
from paretone.training.learner import Rates
from paretone.training.natural_corpus import CorpusOptions
from paretone.training.processes import Processes
from paretone.training.requests import Follower, Trained
from paretone.training.runs import Reporting, begin, complete, use_threads
from paretone.training.session import Intervals
from paretone.wording import listed, percent

OTHER_SHARES = (0.3, 0.125, 0.125)
"""Relative shares of the training steps for a synthesis with two, three and four evaluations."""
REFERENCE_STEPS = 16
"""Steps of the frozen model for the reference of validation."""
OWN_SHARE = 0.5
"""Share of states from the averaged model itself; at time 0 all are noise."""
MEAN_FLOW_SHARE = 0.25
"""Share of intervals with a length above 0, the paper's best."""
MEAN_FLOW_CONSTANT = 1e-3
"""Keeps the weights of small errors finite in MeanFlow's adaptive loss."""


# --- Targets ----------------------------------------------------------------------------------------------------------
# An average velocity u(z, t, r) carries a state from t to r ≥ t: z_r = z_t + (r − t)·u.
def displacement(velocity: Field, state: Tensor, times: Tensor) -> Tensor:
    """(z_r − z_t)/(r − t), (B, frames, bands): displacement of ``state`` under ``velocity`` per unit of time, by Euler
    steps along ``times`` (steps + 1, B) from t to r > t. Second-order steps (Adams–Bashforth, DPM-Solver++) are less
    accurate than Euler's on the bundled F5: eight of them give three times its squared distance to 40."""
    moving = state
    for start, end in itertools.pairwise(times):
        moving = moving + (end - start)[:, None, None] * velocity(moving, start)
    return (moving - state) / (times[-1] - times[0])[:, None, None]


def mean_flow(average: Field, velocity: Tensor, state: Tensor, intervals: Tensor) -> tuple[Tensor, Tensor]:
    """MeanFlow's prediction and target (Geng et al., arXiv 2505.13447), each (B, frames, bands). The definition (r −
    t)·u = ∫ v dτ, differentiated along the path from t on, says u = v + (r − t)·du/dt. The derivative is that of
    ``average`` along the ``velocity`` of the path at ``state``, by one Jacobian-vector product; only the target is
    detached."""
    starts, ends = intervals.unbind(-1)

    def along(moving: Tensor, times: Tensor) -> Tensor:
        return average(moving, torch.stack([times, ends], dim=-1))

    predicted, change = torch.func.jvp(along, (state, starts), (velocity, torch.ones_like(starts)))
    target = velocity + (ends - starts)[:, None, None] * change
    return predicted, target.detach()


Target = TypeVar("Target")


@dataclass
class _Kept(Generic[Target]):
    target: Target
    left: int
    """Remaining uses."""


@dataclass
class TargetsInUse(Generic[Target]):
    """Returns each target ``uses`` times, interleaved with others. They are in no checkpoint: a resumed run makes new
    ones."""

    uses: int
    generator: torch.Generator
    most: int = 32
    """Most targets kept at a time."""
    _kept: list[_Kept[Target]] = field(default_factory=list)

    def next(self, work_out: Callable[[], Target]) -> Target:
        """Next target: a new one from ``work_out`` while few are kept, then one of those."""
        if self.uses == 1:
            return work_out()
        if len(self._kept) < self.most:
            self._kept.append(_Kept(work_out(), self.uses - 1))
            return self._kept[-1].target
        number = int(torch.randint(len(self._kept), (), generator=self.generator))
        chosen = self._kept[number]
        chosen.left -= 1
        if not chosen.left:
            self._kept[number] = self._kept[-1]
            self._kept.pop()
        return chosen.target


# --- Recipe -----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class AverageVelocityOptions(Targets, FineTuningOptions):
    methods: ClassVar[tuple[str, ...]] = METHODS

    guidance: Values
    """All options of the model's guidance."""
    _: KW_ONLY
    learning_rate: float = 4e-4
    matrix_rate: float | None = 0.006
    warm_up: int = 30
    hold: float = 0.0
    validation_items: int = 4
    sway: float = -1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.teacher_steps < FEWEST_STEPS:
            raise SettingError(f"The model must take {FEWEST_STEPS} steps or more, not {self.teacher_steps}.")
        if not 0 <= self.single_share <= 1:
            raise SettingError(f"The share of single evaluations must be from 0 to 1, not {self.single_share:g}.")
        if not 0 < self.temperature <= HIGHEST_TEMPERATURE:
            raise SettingError(
                f"The temperature must be above 0 and at most {HIGHEST_TEMPERATURE:g}, not {self.temperature:g}."
            )
        if self.uses < 1 or (self.uses > 1 and self.method == MEAN_FLOW):
            raise SettingError(
                f"Targets must be used once or more often, not {self.uses} times; those of {MEAN_FLOW} serve one step."
            )

    @property
    def shares(self) -> tuple[float, ...]:
        """Shares of the training steps for a synthesis with one, two, three and four evaluations."""
        return (self.single_share, *((1 - self.single_share) * one / sum(OTHER_SHARES) for one in OTHER_SHARES))


@dataclass(frozen=True)
class Displacement:
    """States at the start of intervals, and the frozen model's displacements from there."""

    problem: Problem
    state: Tensor
    """(B, frames, bands)."""
    intervals: Tensor
    """(B, 2)."""
    target: Tensor
    """(B, frames, bands), per unit of time."""


class AverageVelocity(FineTuningRecipe[AverageVelocityOptions, nn.Module]):
    def __init__(
        self,
        subject: Subject,
        base: str,
        processes: Processes,
        options: AverageVelocityOptions,
        initial: Mapping[str, Tensor] | None = None,
    ) -> None:
        """``subject`` holds the initial model, ``base`` is the fingerprint of its checkpoint; ``initial`` are averaged
        weights of an earlier run by the backbone's own names."""
        guidance = " ".join(f"{name}={value:g}" for name, value in sorted(options.guidance.items()))
        self.name = f"average-velocity {options.method} {guidance}"
        self.origin = "this checkpoint"

        def prepare(student: nn.Module) -> None:
            subject.add_interval(student)
            if initial is not None:
                student.load_state_dict(initial)

        super().__init__(subject, base, processes, options, prepare)
        self._targets: TargetsInUse[Displacement] = TargetsInUse(options.uses, subject.generator)

    def describe(self) -> dict[str, Any]:
        found = super().describe()
        return {**found, "options": found["options"] | {"guidance": dict(self.options.guidance)}}

    def next_loss(self, progress: float) -> tuple[Tensor, dict[str, Tensor]]:
        if self.options.method == MEAN_FLOW:
            loss = self._mean_flow_loss(self.subject.next(self.device))
        else:
            wanted = self._targets.next(self.draw)
            predicted = self.call(wanted.problem, wanted.state, wanted.intervals)
            loss = span_error(predicted, wanted.target, wanted.problem.span)
        return loss, {"loss": loss.detach()}

    def draw(self) -> Displacement:
        """Intervals of the next problem, for one number of evaluations."""
        problem = self.subject.next(self.device)
        generator, items = self.subject.generator, len(problem.times)
        evaluations = 1 + int(torch.multinomial(torch.tensor(self.options.shares), 1, generator=generator))
        numbers = torch.randint(evaluations, (items,), generator=generator)
        own = torch.rand(items, generator=generator) < OWN_SHARE
        # Times of the frozen model's steps over the intervals, (steps + 1, items).
        steps = max(FEWEST_STEPS, round(self.options.teacher_steps / evaluations))
        grid = torch.from_numpy(sampling_grid(evaluations * steps, "uniform", self.options.sway))
        times = grid[steps * numbers + torch.arange(steps + 1)[:, None]].to(self.device)
        state = self._states(problem, evaluations, numbers, own)
        with torch.no_grad():
            velocity = self.subject.guided(self.teacher, problem, self.options.guidance)
            target = displacement(self._in_run_precision(velocity), state, times)
        return Displacement(problem, state, torch.stack([times[0], times[-1]], dim=-1), target)

    @torch.no_grad()
    def _states(self, problem: Problem, evaluations: int, numbers: Tensor, own: Tensor) -> Tensor:
        """States at the start of the intervals ``numbers`` (items,): on the path to the speech or, for ``own`` items
        (items,), after that many evaluations of the averaged model."""
        grid = torch.from_numpy(sampling_grid(evaluations, "uniform", self.options.sway))
        found = state_at(problem, grid[numbers].to(self.device))
        last = int((numbers * own).max())
        if not last:
            return found
        field = self._in_run_precision(self.subject.field(self.average.module, problem))
        state = state_at(problem, torch.zeros_like(problem.times))
        for number, (start, end) in enumerate(itertools.pairwise(grid), start=1):
            interval = torch.stack([start, end]).to(self.device).expand(len(numbers), 2)
            state = state + float(end - start) * field(state, interval)
            arrived = (own & (numbers == number)).to(self.device)
            found = torch.where(arrived[:, None, None], state, found)
        return found

    def _mean_flow_loss(self, problem: Problem) -> Tensor:
        items = len(problem.times)
        ends = torch.rand(2, items, generator=self.subject.generator).sort(dim=0).values
        has_length = torch.rand(items, generator=self.subject.generator) < MEAN_FLOW_SHARE
        starts = torch.where(has_length, ends[0], ends[1]).to(self.device)
        intervals = torch.stack([starts, ends[1].to(self.device)], dim=-1)
        state = state_at(problem, starts)
        with torch.no_grad():
            plain = self.subject.field(self.teacher, problem)(state, starts)
            guided = self.subject.guided(self.teacher, problem, self.options.guidance)(state, starts)
        velocity = (problem.target + guided - plain) * problem.span[..., None]
        # Only the math kernel has a forward derivative; several processes exchange gradients only around ``call``.
        predicted, target = self.call(problem, state, intervals, velocity)
        errors = ((predicted - target).square().mean(-1) * problem.span).sum(1) / problem.span.sum(1)
        return (errors / (errors.detach() + MEAN_FLOW_CONSTANT)).mean()

    def _predicted(self, model: nn.Module, problem: Problem, state: Tensor, intervals: Tensor, *along: Tensor) -> Any:
        """Average velocities of ``model``; with a velocity ``along``, MeanFlow's prediction and target."""
        if not along:
            return self.subject.field(model, problem)(state, intervals)
        from torch.nn.attention import SDPBackend, sdpa_kernel

        with torch.autocast(self.device.type, enabled=False), sdpa_kernel(SDPBackend.MATH):
            return mean_flow(self.subject.field(model, problem), along[0], state, intervals)

    def _in_run_precision(self, velocity: Field) -> Field:
        """``velocity`` computed in the precision of the run, with float32 output."""

        def computed(state: Tensor, times: Tensor) -> Tensor:
            with self.processes.accelerator.autocast():
                return velocity(state, times).float()

        return computed

    @torch.no_grad()
    def validate(self) -> dict[str, float]:
        """Compare the final states of the averaged model with those of the frozen one after many guided steps, from the
        same noise. ``distance 1`` to ``distance 4``: mean squared distance by the number of evaluations. ``left``: that
        distance as a share of the untrained one, that of the frozen model's single branch in as many Euler steps; mean
        over the numbers, 1 at the start, 0 at the goal."""
        numbers = range(1, MOST_EVALUATIONS + 1)
        found = {f"distance {number}": self._distance(self.average.module, number) for number in numbers}
        shares = [distance / plain for distance, plain in zip(found.values(), self._plain_distances, strict=True)]
        return found | {"left": sum(shares) / len(shares)}

    def _distance(self, model: nn.Module, evaluations: int, trained: bool = True) -> float:
        """Mean squared distance of the final states of ``model``, which takes intervals if it is ``trained``."""
        total = count = 0.0
        for problem, end in self._ends:
            field = self.subject.field(model, problem)
            away = (self._end(field, problem, evaluations, trained) - end)[problem.span]
            total, count = total + float(away.square().sum()), count + away.numel()
        return total / count

    def _end(self, field: Field, problem: Problem, evaluations: int, of_intervals: bool) -> Tensor:
        """Final state of ``problem`` under ``field`` after that number of evaluations."""
        grid = torch.from_numpy(sampling_grid(evaluations, "uniform", self.options.sway)).to(self.device)
        times = grid[:, None].expand(-1, len(problem.times))
        state, velocity = state_at(problem, times[0]), self._in_run_precision(field)
        for start, end in itertools.pairwise(times):
            may_stop()
            asked = torch.stack([start, end], dim=-1) if of_intervals else start
            state = state + (end - start)[:, None, None] * velocity(state, asked)
        return state

    @cached_property
    @torch.no_grad()
    def _ends(self) -> list[tuple[Problem, Tensor]]:
        """Validation problems, with the frozen model's final states."""
        found = []
        for problem in self.subject.held_out(self.options.validation_items, self.device):
            field = self.subject.guided(self.teacher, problem, self.options.guidance)
            found.append((problem, self._end(field, problem, REFERENCE_STEPS, False)))
        return found

    @cached_property
    @torch.no_grad()
    def _plain_distances(self) -> list[float]:
        """Distances before training, by the number of evaluations."""
        return [self._distance(self.teacher, number, trained=False) for number in range(1, MOST_EVALUATIONS + 1)]

    def save(self, path: Path) -> None:
        """Write the averaged weights by official keys, with their interval_metadata. Raises :class:`OSError`."""
        options = self.options
        weights = IntervalWeights(
            "", "", MOST_EVALUATIONS, options.sway, options.guidance, options.method, options.temperature
        )
        named = self.subject.official(self.average.module.state_dict(), self.steps)
        trained_weights.save_in_half(path, named, trained_weights.interval_metadata(weights, self.base, self.steps))

    @property
    def file_name(self) -> str:
        return "-".join(f"{name}-{value:g}" for name, value in sorted(self.options.guidance.items())) + ".safetensors"

    @property
    def result(self) -> Values:
        return Values({**self.options.guidance, "method": self.options.method})

    def summary(self, validation: Mapping[str, float]) -> str:
        far = f" end at {percent(validation['left'])} of the squared distance of as many without training"
        return f"One to four evaluations{far if validation else ''}."


SMALL_RATES, USUAL_RATES = Rates(0.006, 4e-4), Rates(None, 1e-5)
"""Learning rates: measured on the bundled model; the official ones for fine-tuning the released models."""
INTERVALS = Intervals(log_steps=10, validation_steps=200, validates_first=True)


def fine_tune(
    request: AverageVelocityRequest,
    follower: Follower,
    intervals: Intervals = INTERVALS,
    corpus: CorpusOptions = CorpusOptions(),
) -> Trained:
    """Train and export the result. A bundled model without given speech learns from ``corpus``, the kind of speech that
    it was trained on. Raises :class:`paretone.errors.PlainError`, and :class:`Cancelled` after writing a checkpoint."""
    chosen = entry(request.model)
    if reason := why_not_trained(chosen):
        raise TrainingError(reason)
    options = options_of(request, chosen)
    run = begin(request, chosen, follower)
    seed = own_seed(request.seed, run.processes)
    learning = subject_of(run, SubjectOptions(options.guidance, corpus, request.frames, seed))
    subject, base = learning.subject, learning.base
    rates = rates_of(request, subject.model.parameters(), SMALL_RATES, USUAL_RATES)
    options = replace(options, learning_rate=rates.others, matrix_rate=rates.matrices)
    initial = None if not request.initial else initial_weights(Path(request.initial), base)
    recipe = AverageVelocity(subject, base, run.processes, options, initial)
    return complete(recipe, run, own_place(request.model) / trained_weights.INTERVALS, intervals)


def initial_weights(path: Path, base: str) -> Mapping[str, Tensor]:
    """Weights in ``path`` by the backbone's own names. Raises :class:`PlainError` if they are not average-velocity
    weights, or are from another checkpoint than ``base``, a fingerprint."""
    told = metadata_of(path)
    if trained_weights.described_interval(told, str(path), "") is None:
        raise TrainingError(f"{path} holds no weights of average velocity; choose a file that this training wrote.")
    if told.get("base") != base:
        raise TrainingError(f"{path} was made from another checkpoint; start from weights of the one that is trained.")
    return own_names(trained_weights.plain_names(read_float_weights(path)))


def options_of(request: AverageVelocityRequest, chosen: Model) -> AverageVelocityOptions:
    usual, sway = _usual(chosen)
    unknown = [name for name in request.guidance if name not in usual]
    if unknown:
        raise TrainingError(f"{chosen.title} is not guided by {unknown[0]}; its guidance is {listed(sorted(usual))}.")
    known = [one for one in chosen.options if one.name in usual]
    values = checked(known, {**usual, **request.guidance}, chosen.title) if known else {**usual, **request.guidance}
    return AverageVelocityOptions(
        Values({name: float(values[name]) for name in usual}),
        **{one.name: getattr(request, one.name) for one in fields(Targets)},
        sway=sway,
        seed=request.seed,
        half_precision=request.half_precision,
        rate_scale=request.rate_scale,
    )


def _usual(chosen: Model) -> tuple[dict[str, float], float]:
    """Usual guidance of the model, and the sway of its grid."""
    known = checked(chosen.options, chosen.default_options, chosen.title)
    if chosen.mel_flow is not None:
        known = chosen.mel_flow.values(known)
    return {name: float(known[name]) for name in GUIDANCE if name in known}, float(known["sway"])


def train(task: JobTask) -> Trained:
    use_threads(task.request)
    return fine_tune(task.request, Reporting(task.observer))
