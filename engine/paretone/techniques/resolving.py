"""Resolution of a setting to a plan, technique by technique, before anything runs. Torch-free.

Techniques resolve in the order of :data:`paretone.techniques.base.SLOTS`, each on the plan of the earlier ones; two of
one slot exclude each other. The same code checks settings without a loaded model (studies, profiles, the window), on
the catalogue's information and ignoring missing preparations.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from paretone.checks.beforehand import collapses
from paretone.errors import PlainError, SettingError
from paretone.models import catalogue
from paretone.models.base import FLOW, LANGUAGE, MASKED, ModelInfo
from paretone.models.declaration import Model
from paretone.sampling.operations import OperationCounts
from paretone.setting.compatibility import Compatibility
from paretone.setting.knobs import NO_VALUES, Values, checked
from paretone.setting.plan import (
    WHOLE,
    FlowPlan,
    LanguagePlan,
    MaskedPlan,
    NotPrepared,
    Plan,
    described,
    flow_of,
    kind_of,
)
from paretone.setting.setting import Artefact, Setting, UsedTechnique
from paretone.techniques.base import SLOTS, Conflict, Context, Technique, idle
from paretone.techniques.registry import plug_in, technique

PLANS: dict[str, type[Plan]] = {FLOW: FlowPlan, LANGUAGE: LanguagePlan, MASKED: MaskedPlan}


class Refused(SettingError):
    """Refusal of a setting because of its ``techniques``."""

    def __init__(self, sentence: str, techniques: tuple[str, ...]) -> None:
        super().__init__(sentence)
        self.techniques = techniques


def resolve(info: ModelInfo, setting: Setting, artefacts: Sequence[Artefact] = (), *, prepared: bool = True) -> Any:
    """Resolve ``setting`` on the loaded model of ``info`` to a :class:`FlowPlan`, :class:`LanguagePlan` or
    :class:`MaskedPlan`. ``artefacts`` hold those that the setting names by fingerprint. Not ``prepared``: techniques
    without their preparation have no effect, as needed to prepare them. Raises :class:`SettingError` and
    :class:`ProfileError` with the reason why the setting cannot be used."""
    return _plan(info, setting, artefacts, loaded=True, prepared=prepared)


def compatibility_of(
    info: ModelInfo, setting: Setting, artefacts: Sequence[Artefact] = (), *, of_flow: bool = False
) -> Compatibility:
    """Compatibility of preparations under ``setting`` on the loaded model of ``info``; ``of_flow``: of those for the
    flow after a language model."""
    plan = resolve(info, setting, artefacts, prepared=False)
    return (flow_of(plan) if of_flow else plan).compatibility


def problem(info: ModelInfo, setting: Setting, artefacts: Sequence[Artefact] = ()) -> str | None:
    """Reason why ``setting`` cannot be used on the loaded model, as a sentence, or ``None``."""
    try:
        resolve(info, setting, artefacts)
    except PlainError as error:
        return str(error)
    return None


def foreseen(setting: Setting, info: ModelInfo | None = None) -> Any:
    """Plan of ``setting`` without a loaded model, from the catalogue or from ``info`` with no more information. Raises
    :class:`SettingError` if techniques cannot be used together or with the options."""
    return _plan(info or known(setting.model), setting, (), loaded=False, prepared=False)


def _plan(info: ModelInfo, setting: Setting, artefacts: Sequence[Artefact], *, loaded: bool, prepared: bool) -> Any:
    plan = _begin(info, setting)
    for _, found in _steps(info, setting, artefacts, plan, loaded=loaded, prepared=prepared):
        plan = found
    return _finish(info, plan)


def options_in_force(setting: Setting) -> Values:
    """All sampler options in force under ``setting``. Raises :class:`SettingError`."""
    return foreseen(setting).options


def changed_options(setting: Setting) -> dict[str, object]:
    """The options that differ from the model's defaults, unless a knob of a technique is in force in their place."""
    model = catalogue.find(setting.model)
    usual = model.options_with() if model else NO_VALUES
    changed = {name: value for name, value in setting.options.items() if value != usual.get(name)}
    if not any(name in one.knobs for one in setting.techniques for name in changed):
        return changed
    try:
        effective = options_in_force(setting)
    except SettingError:
        return changed
    return {name: value for name, value in changed.items() if effective[name] == value}


def conflict(setting: Setting, name: str = "") -> str | None:
    """Reason why the techniques of ``setting`` cannot be used together or with its options, as a sentence, or ``None``;
    with a ``name``, only for that technique."""
    while True:
        try:
            foreseen(setting)
        except Refused as error:
            if not name or name in error.techniques:
                return str(error)
            # Another technique is refused: try this one without it.
            setting = setting.without(error.techniques[-1])
        except SettingError as error:
            return str(error)
        else:
            return None


def remarks(setting: Setting) -> dict[str, tuple[str, ...]]:
    """Remarks of each technique of ``setting``, by name, as far as known without a loaded model."""
    found: dict[str, tuple[str, ...]] = {}
    info = known(setting.model)
    plan = _begin(info, setting)
    before = plan.notes
    try:
        for name, after in _steps(info, setting, (), plan, loaded=False, prepared=False):
            found[name] = after.notes[len(before) :]
            before = after.notes
    except SettingError:
        pass  # The reason is shown separately; what was found so far is valid.
    return found


def require_family(model: ModelInfo | Model, setting: Setting) -> None:
    """Raise :class:`SettingError` if a technique of ``setting`` is for other families of models."""
    for entry in setting.techniques:
        declared = technique(entry.technique)
        if model.family not in declared.families:
            raise Refused(f"{declared.title} is not for models like {model.title}; do without it.", (declared.name,))


def without_slots(setting: Setting, *slots: str) -> Setting:
    """``setting`` without the techniques of these ``slots``."""
    for one in setting.techniques:
        if technique(one.technique).main_slot in slots:
            setting = setting.without(one.technique)
    return setting


def knobs_of(entry: UsedTechnique) -> Values:
    """All knob values of a used technique. Raises :class:`SettingError` for unknown knobs and values out of range."""
    declared = technique(entry.technique)
    return checked(declared.knobs, entry.knobs, declared.title)


def knobs_under(setting: Setting, name: str) -> Values:
    """All knobs of the technique ``name`` under ``setting``: the defaults if unused. Raises as :func:`knobs_of`."""
    return knobs_of(setting.technique(name) or UsedTechnique(name))


def known(model: str) -> ModelInfo:
    """The catalogue's information on a model. Raises :class:`SettingError` for an unknown model."""
    entry = catalogue.entry(model)
    return ModelInfo(
        id=entry.id,
        title=entry.title,
        family=entry.family,
        variant=entry.variant,
        checkpoint="",
        fingerprint="",
        licence=entry.licence,
        device="",
        precision="float32",
        sample_rate=0,
        layers=0,
        branches=0,
        parameters=0,
        text_front_end="",
        knobs=entry.options,
        guidance=entry.guidance,
        mel_flow=entry.mel_flow,
        codes_per_token=entry.codes_per_token,
    )


def _begin(info: ModelInfo, setting: Setting) -> Any:
    require_family(info, setting)
    options = checked(info.knobs, setting.options, info.title)
    plan = PLANS[info.family].begin(info, options, setting.seed)
    if isinstance(plan, LanguagePlan) and info.mel_flow is not None:
        plan = replace(plan, flow=FlowPlan.begin(info.of_flow, info.mel_flow.values(options), setting.seed))
    if info.precision.endswith(WHOLE):
        plan = plan.noted(
            f"On {info.device}, {info.title} computes everything in {info.precision.removesuffix(WHOLE)} unless told "
            "otherwise, as its authors' code does; speed-ups are over that."
        )
    if info.trained_guidance is None:
        return plan
    # Guidance on top of that in the checkpoint's weights would be far too strong.
    unguided = info.guidance.off(options)
    if info.guidance.branches(options) > 1:
        trained = info.trained_guidance
        plan = plan.noted(
            f"Guidance is ignored: {info.title} has its guidance in its weights (w = {trained:.2f}) and speaks as if "
            f"guided by {trained / (1 - trained):.2g} already; more on top would be too much."
        )
    return replace(plan, options=unguided, reference=unguided)


def _steps(
    info: ModelInfo, setting: Setting, artefacts: Sequence[Artefact], plan: Any, *, loaded: bool, prepared: bool
) -> Iterator[tuple[str, Any]]:
    """Resolve the techniques of ``setting`` in order; yield each name with the plan after it."""
    declared = {entry.technique: technique(entry.technique) for entry in setting.techniques}
    taken = _taken(declared)

    def place(entry: UsedTechnique) -> tuple[int, int, str]:
        one = declared[entry.technique]
        slot = SLOTS.index(one.main_slot) if one.main_slot in SLOTS else len(SLOTS)
        return slot, one.place, one.name

    for entry in sorted(setting.techniques, key=place):
        one = declared[entry.technique]
        context = Context(info, setting, entry, tuple(artefacts), loaded, taken)
        plan = _resolved(one, context, plan, prepared)
        yield one.name, plan


def _taken(declared: dict[str, Technique]) -> dict[str, Technique]:
    """The technique in each slot. Raises :class:`Refused` for two techniques of one slot."""
    taken: dict[str, Technique] = {}
    for one in declared.values():
        if not one.slot:
            continue
        other = taken.setdefault(one.slot, one)
        if other is not one:
            first, second = sorted((other, one), key=lambda each: each.place)
            raise Refused(
                f"{first.title} and {second.title} both decide about {one.main_slot}; do without one of the two.",
                (first.name, second.name),
            )
    return taken


def _resolved(one: Technique, context: Context, plan: Any, prepared: bool) -> Any:
    """``plan`` with a technique. Any error of the technique becomes a :class:`SettingError`."""
    if isinstance(plan, LanguagePlan) and one.of_mel_flow:
        return _on_flow(one, context, plan, prepared)
    try:
        knobs = checked(one.knobs, context.entry.knobs, one.title)
        if reason := one.not_offered(context.info):
            raise SettingError(reason)
        runs = True
        try:
            found = one.resolve(context, knobs, plan)
        except NotPrepared as error:
            if prepared:
                raise
            found, runs = error.plan or plan, False
        found = _accepted(one, context, plan, found)
        return replace(found, idle=(*found.idle, *idle(one, knobs, found))) if runs else found
    except (Refused, NotPrepared):
        raise
    except Conflict as error:
        others = (context.taken[slot].name for slot in error.slots if slot in context.taken)
        raise Refused(str(error), (*others, one.name)) from error
    except SettingError as error:
        raise Refused(str(error), (one.name,)) from error
    except (PlainError, KeyboardInterrupt):
        raise
    except BaseException as error:  # A plug-in's own mistake: it is named, and everything else continues.
        reason = described(error, one.resolve.__module__ or "")
        raise Refused(
            f"{one.title} failed when it was resolved ({reason}); do without it, or {_mended(one)}.", (one.name,)
        ) from error


def _on_flow(one: Technique, context: Context, plan: LanguagePlan, prepared: bool) -> LanguagePlan:
    """``plan`` with a technique on the flow after the language model."""
    title, flow = context.info.title, plan.flow
    if flow is None:
        raise Refused(
            f"{one.title} is not for models like {title}, which makes audio of its tokens without a flow; do without "
            "it.",
            (one.name,),
        )
    if not one.runs_on(context.info.mel_flow):
        missing = next((name for name in one.options if name not in flow.options), "")
        why = f"has no option {missing}; {one.title} needs it" if missing else ""
        why = why or f"is not a diffusion transformer; {one.title} skips layers of one"
        raise Refused(f"{title}'s flow {why}. Do without it.", (one.name,))
    try:
        found = _resolved(one, replace(context, info=context.info.of_flow, speech=context.info), flow, prepared)
    except NotPrepared as error:
        without: Any = error.plan or flow
        raise NotPrepared(str(error), replace(plan, flow=without), error.command) from None
    plan = replace(plan, flow=found, idle=(*plan.idle, *found.idle[len(flow.idle) :]))
    if found.decides and plan.options.get("stream"):
        # Later parts of a stream attend to all modules of earlier ones.
        plan = replace(plan, options=plan.options.replace(stream=False)).noted(
            f"Under {one.title}, audio comes at the end instead of in a stream: what it leaves out is known only once "
            "it runs."
        )
    return plan.noted(*found.notes[len(flow.notes) :])


def _accepted(one: Technique, context: Context, before: Any, found: Any) -> Any:
    """Check the plan ``found``, which a technique made of ``before``. Raises :class:`Refused` if it cannot run."""
    owner, fault = plug_in(one.name), ""
    if type(found) is not type(before):
        fault = f"resolve must return the plan, a {type(before).__name__}, not {kind_of(found)}"
    elif not isinstance(found.options, Values):
        fault = f"options must be Values, not {kind_of(found.options)}; use plan.options.replace"
    else:
        try:
            found = replace(found, options=checked(context.info.knobs, found.options, context.info.title))
            fault = found.fault
        except SettingError as error:
            if not owner:
                raise
            fault = str(error).rstrip(".")
    if not fault and owner:
        known = before.parts
        new = {name: part for name, part in found.parts.items() if part != known.get(name)}
        found = replace(found, **{name: replace(part, owner=owner) for name, part in new.items()})
        if isinstance(found, FlowPlan) and found.evaluated_share not in (None, before.evaluated_share):
            share = found.evaluated_share(OperationCounts(2.0, 4.0, 1.0, 12, 2))  # Example costs.
            if not isinstance(share, int | float) or not 0 <= share < math.inf:
                fault = f"evaluated_share must give a share from 0, not {kind_of(share)}"
    if fault:
        raise Refused(
            f"{one.title} makes a plan that cannot run: {fault}. Do without it, or {_mended(one)}.", (one.name,)
        )
    return found


def _mended(one: Technique) -> str:
    return f"mend {plug_in(one.name)}" if plug_in(one.name) else "tell its authors"


def _finish(info: ModelInfo, plan: Any) -> Any:
    """``plan`` with the results of all techniques together."""
    compatibility = Compatibility.of(info.id, plan.fingerprint, info.variant, info.knobs, plan.options)
    plan = replace(plan, compatibility=compatibility)
    if info.family == FLOW:
        guided = plan.guidance.branches(info.guidance.branches(plan.options))
        plan = replace(plan, branches=guided, reference_branches=info.guidance.branches(plan.reference))
    if isinstance(plan, LanguagePlan) and plan.flow is not None:
        notes = plan.flow.notes  # Warnings of collapses are about flow models.
        plan = replace(plan, flow=replace(_finish(info.of_flow, plan.flow), notes=notes))
    return plan.noted(*collapses(plan, info))
