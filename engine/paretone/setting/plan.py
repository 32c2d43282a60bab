"""A plan: a setting resolved for one model before anything runs. Torch-free.

:func:`paretone.techniques.resolve` starts with the model's own plan; every technique in use turns it into the next. The
families (:mod:`paretone.models.families`) then run the plan; they know no technique. A technique changes how a model
computes through the fields below. If that takes torch, the field holds a :class:`Part`: the name of a function that the
family imports and calls when it runs.
"""

from __future__ import annotations

import math
import re
import traceback
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from paretone.errors import Cancelled, PlainError, PlugInError, SettingError, is_device_lost, is_out_of_memory
from paretone.reading import shortened, shown
from paretone.sampling.guidance import BRANCHES, Saturation, Strength, most_branches
from paretone.sampling.schedules import evaluations
from paretone.setting.compatibility import Compatibility
from paretone.setting.knobs import Values

if TYPE_CHECKING:
    from paretone.models.base import (
        DraftWeights,
        FeatureDraftWeights,
        IntervalWeights,
        ModelInfo,
        StudentWeights,
        WeightSet,
    )
    from paretone.sampling.operations import OperationCounts

NOTHING_SKIPPED, NOTHING_TO_SKIP = "Nothing was skipped", "Nothing is skipped"
"""Beginnings of notes on techniques that saved nothing: found by running, or known beforehand."""
WHOLE = "_all"
"""Suffix of precisions for the whole network, not only its products and attention."""
PRECISIONS = ("float32", "bfloat16", "float16", "int8", f"bfloat16{WHOLE}", f"float16{WHOLE}")


@dataclass(frozen=True)
class Part:
    """A function that needs torch, by its name ``"package.module:function"``, and its keyword arguments. Arguments must
    be hashable and picklable: plans are compared, and used as keys."""

    target: str
    arguments: tuple[tuple[str, Any], ...] = ()
    owner: str = field(default="", compare=False)
    """Plug-in that it belongs to, for messages, set by :func:`paretone.techniques.resolve`; ``""``: built in."""

    @classmethod
    def of(cls, target: str, **arguments: Any) -> Part:
        return cls(target, tuple(sorted(arguments.items())))

    def make(self, *given: Any) -> Any:
        """Import the function and call it with the family's values and the arguments. Raises :class:`SettingError` if
        there is no such function, and :class:`PlugInError` if a plug-in's fails."""
        with self.blamed():
            try:
                function = imported(self.target)
            except SettingError as error:
                if not self.owner:
                    raise
                raise PlugInError(f"{str(error).partition('; ')[0]}; do without it, or mend {self.owner}.") from error
            return function(*given, **dict(self.arguments))

    @contextmanager
    def blamed(self) -> Iterator[None]:
        """Turn unexpected errors in a plug-in's part into :class:`PlugInError` with its name; built-in ones pass."""
        try:
            yield
        except (PlainError, Cancelled, KeyboardInterrupt):
            raise
        except BaseException as error:  # Includes a plug-in's own kinds, and those that end generators.
            if not self.owner or is_out_of_memory(error) or is_device_lost(error):
                raise
            raise PlugInError(
                f"{self.target} failed ({described(error, self.target)}); do without it, or mend {self.owner}."
            ) from error

    def wrong(self, found: object, wanted: str) -> PlugInError:
        return PlugInError(
            f"{self.target} gave {kind_of(found)}, but must give {wanted}; do without it, or mend {self.owner}."
        )


def attempted(function: Callable[..., Any], *given: object) -> tuple[Any, BaseException | None]:
    """Result of a plug-in's function, or its exception, except :class:`KeyboardInterrupt`, which ends the program."""
    try:
        return function(*given), None
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        return None, error


def described(error: BaseException, target: str) -> str:
    """Exception with the last line in the package of ``target``, such as ``KeyError: 'a', plugin.py line 7``."""
    root, place = target.partition(":")[0].partition(".")[0], ""
    for frame, line in traceback.walk_tb(error.__traceback__):
        if str(frame.f_globals.get("__name__", "")).partition(".")[0] == root:
            place = f", {Path(frame.f_code.co_filename).name} line {line}"
    words, failed = attempted(str, error)  # The class may be a plug-in's.
    words = "" if failed is not None else words
    missing = (error.name or "").partition(".")[0] if isinstance(error, ModuleNotFoundError) else ""
    # Packages whose former names were too common for installation.
    if now := {"engine": "paretone", "app": "paretone_app"}.get(missing):
        words = f"{error}: since Paretone 0.2 the package {missing!r} is named {now!r}"
    return f"{shortened(f'{type(error).__name__}: {words}'.rstrip(': '), 300)}{place}"


def kind_of(value: object) -> str:
    """Short description of ``value``, with shape and number type if it has them."""
    shape, number = getattr(value, "shape", None), getattr(value, "dtype", None)
    if shape is not None:
        of = f" of {str(number).removeprefix('torch.')}" if number is not None else ""
        return f"a {type(value).__name__} of shape {tuple(shape)}{of}"
    return shown(value) if value is None or isinstance(value, bool | int | float | str) else type(value).__name__


def named(name: str) -> Any:
    """The module called ``name``, or an object ``"package.module:object"``."""
    module, _, within = name.partition(":")
    found = import_module(module)
    return getattr(found, within) if within else found


def imported(target: str) -> Any:
    """What :func:`named` finds. Raises :class:`SettingError` if it does not exist."""
    try:
        return named(target)
    except (ImportError, AttributeError) as error:
        raise SettingError(f"{target} could not be imported ({error}); install its package again.") from error


@dataclass(frozen=True)
class GuidanceSchedule:
    """Guided steps. By default all are."""

    steps: int | None = None
    """Number of guided steps from the first; ``None``: all."""
    every: int = 1
    """Every n-th of these steps is guided (masked models)."""
    reuse: bool = False
    """Whether steps in between reuse the effect of the last guided step."""
    strengths: tuple[Strength, ...] | None = None
    """Strength of each branch over the next, in place of the options' (flow models)."""
    saturation: Saturation | None = None
    """Condition for no longer computing an effect (flow models)."""

    @property
    def fault(self) -> str:
        """Reason why this schedule is invalid, or ``""``."""
        if self.steps is not None and not _is_count(self.steps):
            return f"steps must be None or a whole number from 1, not {kind_of(self.steps)}"
        if not _is_count(self.every):
            return f"every must be a whole number from 1, not {kind_of(self.every)}"
        strengths = () if self.strengths is None else self.strengths
        if not isinstance(strengths, tuple) or not all(isinstance(one, Strength) for one in strengths):
            return f"strengths must be None or a tuple of Strength, not {shown(strengths)}"
        if self.strengths is not None and len(strengths) != len(BRANCHES) - 1:
            return (
                f"there are {len(strengths)} strengths, but one of each branch over the next makes {len(BRANCHES) - 1}"
            )
        return ""

    @property
    def decides(self) -> bool:
        """Whether branches are chosen evaluation by evaluation."""
        return self.strengths is not None or self.saturation is not None

    def branches(self, own: int) -> int:
        """Maximum number of simultaneous branches; ``own``: number needed by the options alone."""
        return own if self.strengths is None else most_branches(self.strengths)

    def shortened(self, steps: int) -> bool:
        """Whether the last of ``steps`` steps are unguided."""
        return self.steps is not None and self.steps < steps


@dataclass(frozen=True)
class Graphing:
    """Recording of forward passes as CUDA graphs."""

    bucket: int
    """Lengths are rounded up to multiples of this; 1: one graph per length."""
    most: int
    share: float
    """Maximum share of the device's memory for all graphs, at most 1."""


@dataclass(frozen=True)
class Launching:
    """Launch mode of forward passes, without effect on their results."""

    graphs: Graphing | None = None
    mode: str | None = None
    """Mode of ``torch.compile``."""


@dataclass(frozen=True)
class Idle:
    """Note for a take if a part of its plan saved nothing."""

    part: str
    technique: str
    reason: str
    """Reason and remedy, the end of a sentence."""


@dataclass(frozen=True)
class Blocks:
    """Division of a masked canvas into blocks."""

    size: int
    first_size: int
    """Frames of the first block."""
    first_steps: int
    later_steps: int
    """Steps of later blocks; the maximum if ``adaptive``."""
    adaptive: bool
    """Whether later blocks take only as many steps as playback leaves measured time for."""
    step_seconds: float
    """If not adaptive: assumed seconds per step, which limit the steps; 0: no limit."""
    look_ahead: int | None
    """Frames after a block that the network sees; ``None``: all."""


def says_idle(note: str) -> bool:
    """Whether a take's ``note`` is about a technique that saved nothing."""
    return note.startswith((NOTHING_SKIPPED, NOTHING_TO_SKIP))


@dataclass(frozen=True)
class Plan:
    """Fields common to all families."""

    options: Values
    """Sampler options in force."""
    reference: Values
    """Options of the same setting without techniques, the reference for savings."""
    fingerprint: str
    """SHA-256 of the weights in use, hexadecimal."""
    compatibility: Compatibility
    """Compatibility required of artefacts. While techniques resolve: see :meth:`Context.compatibility`."""
    precision: str = "float32"
    seed: int = field(default=0, compare=False)
    """The setting's seed, ignored in comparisons: networks and measurements serve every seed."""
    guidance: GuidanceSchedule = GuidanceSchedule()
    launching: Launching = Launching()
    notes: tuple[str, ...] = ()
    """Sentences for a take on unexpected properties of the result."""
    idle: tuple[Idle, ...] = field(default=(), compare=False)
    """Notes for parts that may save nothing, as only a run can tell."""

    @classmethod
    def begin(cls, info: ModelInfo, options: Values, seed: int = 0) -> Self:
        """Plan of the model ``info`` before any technique."""
        compatibility = Compatibility.of(info.id, info.fingerprint, info.variant, info.knobs, options)
        return cls(options, options, info.fingerprint, compatibility, info.precision, seed=seed)

    def noted(self, *sentences: str) -> Self:
        return replace(self, notes=(*self.notes, *sentences))

    def idle_notes(self, saved: Collection[str]) -> tuple[str, ...]:
        """Notes on the parts missing in ``saved``."""
        idle = (one for one in self.idle if one.part not in saved)
        return tuple(f"{NOTHING_SKIPPED}: {one.technique}: {one.reason}." for one in idle)

    @property
    def computes_in_part(self) -> bool:
        """Whether evaluations compute different parts, so that none can be recorded or compiled as a whole."""
        return False

    @property
    def parts(self) -> dict[str, Part]:
        found = {one.name: getattr(self, one.name) for one in fields(self)}
        return {name: value for name, value in found.items() if isinstance(value, Part)}

    @property
    def fault(self) -> str:
        """Reason why no model can run it, such as ``times must increase``, or ``""``."""
        for one in fields(self):
            value, kind = getattr(self, one.name), str(one.type)
            if kind == "Part | None" and value is not None:
                if not isinstance(value, Part):
                    return f"{one.name} must be a Part or None, not {kind_of(value)}"
                if not _TARGET.fullmatch(str(value.target)):
                    return f"{one.name} must name its function as 'package.module:function', not {shown(value.target)}"
        for name, wanted in (("guidance", GuidanceSchedule), ("launching", Launching)):
            if not isinstance(getattr(self, name), wanted):
                return f"{name} must be a {wanted.__name__}, not {kind_of(getattr(self, name))}"
        if self.guidance.fault:
            return f"guidance: {self.guidance.fault}"
        if self.precision not in PRECISIONS:
            return f"precision must be one of {', '.join(PRECISIONS)}, not {shown(self.precision)}"
        if not isinstance(self.notes, tuple) or not all(isinstance(one, str) for one in self.notes):
            return f"notes must be a tuple of sentences, not {kind_of(self.notes)}"
        try:
            hash(self)
        except TypeError as error:
            return f"the arguments of parts must be hashable ({error}); give tuples in place of lists"
        return ""


@dataclass(frozen=True)
class FlowPlan(Plan):
    """Plan of a model that goes from noise to speech."""

    weights: WeightSet | IntervalWeights | None = None
    temperature: float = 1.0
    """Scale of the initial noise."""
    branches: int = 1
    reference_branches: int = 1
    times: tuple[float, ...] | None = None
    """Step times from 0 (noise) to 1 (speech), steps + 1 values, in place of the options' grid."""
    halves_first: bool = False
    """Whether the grid's first step is halved, for a solver that takes two evaluations there."""
    stepper: Part | None = None
    """Changes the sampler's step: called for each passage as ``function(times, follow, **arguments) -> follow`` with
    the grid (steps + 1 values) and the model's step, :data:`paretone.sampling.flow.Follow`. One evaluation per step."""
    combining: Part | None = None
    """Changes how the branches' velocities become one: called for each passage as ``function(combine, **arguments) ->
    combine`` with the model's own :data:`paretone.sampling.flow.Combine`, including the plan's guidance. The new one
    calls it once per evaluation."""
    evaluator: Part | None = None
    """Computes evaluations in part: called for each synthesis as ``function(stage, **arguments)`` with a
    :class:`paretone.models.families.evaluations.Stage`; returns a function without arguments that gives each passage's
    :class:`paretone.sampling.flow.Evaluator`."""
    evaluated_share: Callable[[OperationCounts], float] | None = None
    """Predicted share of operations that the evaluator computes; ``None`` if only a run can tell."""

    @property
    def computes_in_part(self) -> bool:
        return self.evaluator is not None

    @property
    def decides(self) -> bool:
        """Whether only a run can tell which modules and branches it computes."""
        in_part = self.evaluator is not None and self.evaluated_share is None
        return in_part or self.guidance.saturation is not None

    @property
    def fault(self) -> str:
        if not _is_number(self.temperature) or self.temperature < 0:
            return f"temperature must be a number from 0, not {kind_of(self.temperature)}"
        times, steps = self.times, int(self.options["steps"])
        if times is None:
            return super().fault
        if not isinstance(times, tuple) or not all(map(_is_number, times)):
            return f"times must be a tuple of finite numbers, not {shown(times)}"
        if len(times) != steps + 1:
            return f"times has {len(times)} values, but {steps} steps have {steps + 1}"
        if abs(times[0]) > 1e-5 or abs(times[-1] - 1) > 1e-5:  # Computed times are rounded.
            return f"times must go from 0 to 1, not from {times[0]:g} to {times[-1]:g}"
        for before, after in pairwise(times):
            if after <= before:
                return f"times must increase, but {after:g} comes after {before:g}"
        return super().fault

    @property
    def evaluations(self) -> int:
        return evaluations(self.options) + self.halves_first

    def ops_ratio(self, operations: OperationCounts) -> float | None:
        """Backbone operations over those of the same setting without techniques, predicted from the cost of one
        evaluation, for any number of branches; ``None`` if only a run can tell."""
        if self.guidance.decides or (self.evaluator is not None and self.evaluated_share is None):
            return None
        spent = replace(operations, branches=self.branches)
        full = replace(operations, branches=self.reference_branches)
        ratio = self.evaluated_share(spent) if self.evaluated_share else 1.0
        steps = self.options["steps"]
        if self.guidance.steps is not None and self.guidance.shortened(steps):
            guided = (self.guidance.steps + self.halves_first) / (steps + self.halves_first)
            ratio *= guided + (1 - guided) * replace(operations, branches=1).evaluation / spent.evaluation
        return ratio * self.evaluations * spent.evaluation / (evaluations(self.reference) * full.evaluation)


@dataclass(frozen=True)
class InnerDrafts:
    """How codes within a frame are drafted."""

    layers: int
    """First layers of the network within frames; they draft, and the others check."""
    most: int
    """Codes drafted at a time."""


@dataclass(frozen=True)
class LanguagePlan(Plan):
    """Plan of a model that decodes token by token."""

    weights: StudentWeights | DraftWeights | None = None
    """Another network in the model's place; a draft where it speaks alone."""
    layers: tuple[int, ...] | None = None
    """Indices of the layers to run, in order; ``None``: all."""
    products: Part | None = None
    """Changes how products with the weights are computed, the draft's as well: called for each network as
    ``function(tokens, **arguments)`` with a :class:`paretone.models.families.language_network.TokenModel`; returns
    another."""
    draft: DraftWeights | FeatureDraftWeights | StudentWeights | None = None
    drafts_in_frames: InnerDrafts | None = None
    """Drafts of the codes of a frame after its first; ``None``: none."""
    sampler: Part | None = None
    """Changes how tokens are drawn: called for each passage as ``function(own, **arguments)`` with the model's own
    :class:`paretone.sampling.tokens.TokenSampler`; returns another."""
    acceptance: Part | None = None
    """Changes which drafted tokens are kept: called for each passage as ``function(codes, rows, device, **arguments)``
    with the number of spoken ids and of all ids; returns a :data:`paretone.sampling.verification.Rule`."""
    flow: FlowPlan | None = None
    """Plan of the flow from tokens to mel frames, in models that have one."""
    decoding: Part | None = None
    """Replaces decoding token by token: called for each passage as ``function(loop, **arguments)`` with a
    :class:`paretone.models.families.language_network.DecodingLoop`; returns a
    :data:`paretone.sampling.autoregressive.Decoding`."""


@dataclass(frozen=True)
class MaskedPlan(Plan):
    """Plan of a model that fills in masked tokens."""

    blocks: Blocks | None = None
    """Blocks of the canvas; ``None``: filled in as a whole."""
    schedule: Part | None = None
    """Decides how many codes each step commits: called for each block as ``function(cells, steps, **arguments)`` with
    the number of its codes and the maximum of steps; returns a :data:`paretone.sampling.demasking.Schedule`."""
    run: Part | None = None
    """Computes passes in part: called for each canvas as ``function(network, request, guidance, **arguments)``;
    returns a :class:`paretone.sampling.demasking.CanvasRun`, such as a
    :class:`paretone.models.kernels.fused_masked.MaskedRun`."""

    @property
    def computes_in_part(self) -> bool:
        return self.run is not None

    @property
    def fault(self) -> str:
        blocks: object = self.blocks
        if blocks is not None and not isinstance(blocks, Blocks):
            return f"blocks must be None or Blocks, not {kind_of(blocks)}"
        for name in () if self.blocks is None else ("size", "first_size", "first_steps", "later_steps"):
            if not _is_count(getattr(self.blocks, name)):
                return f"{name} of blocks must be a whole number from 1, not {kind_of(getattr(self.blocks, name))}"
        return super().fault


_TARGET = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def flow_of(plan: Any) -> FlowPlan:
    """``plan`` of a flow model, or of the flow after a language model. Raises :class:`SettingError` without one."""
    found = plan.flow if isinstance(plan, LanguagePlan) else plan
    if not isinstance(found, FlowPlan):
        raise SettingError("This model has no flow from noise to speech; load another model.")
    return found


def with_flow_options(plan: Any, **options: object) -> Any:
    """``plan`` with other options of its flow, even beyond their limits. Raises as :func:`flow_of`."""
    flow = flow_of(plan)
    changed = replace(flow, options=flow.options.replace(**options))
    return changed if flow is plan else replace(plan, flow=changed)


class NotPrepared(SettingError):
    """A technique lacks its table, draft or weights. ``plan``: then, as far as known; ``command`` prepares it."""

    def __init__(self, sentence: str, plan: Plan | None = None, command: str = "") -> None:
        super().__init__(sentence)
        self.plan = plan
        self.command = command
