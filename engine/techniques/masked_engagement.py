"""What a setting means on a loaded masked model; see :mod:`engine.techniques.engagement`. Torch-free."""

from __future__ import annotations

from dataclasses import dataclass

from engine.models.base import ModelInfo
from engine.setting.knobs import Values, checked
from engine.setting.setting import Setting
from engine.techniques import (
    blockwise,
    frozen_prefix,
    guidance_interval,
    guidance_stride,
    in_force,
    knobs_of,
    layer_reuse,
    precision,
    remarks,
    require_family,
)
from engine.techniques.blockwise import Blockwise
from engine.techniques.launching import PLAIN, Launching, launching

TEXT_COMPUTED = "Text and reference were computed at every step: CUDA graphs and compiled code are of whole passes."
ROWS_COMPUTED = "Text and reference were computed at every step: what layers added is kept for all rows."
NO_GUIDANCE = "No guidance: the model speaks less clearly and less like the voice without it."


@dataclass(frozen=True)
class MaskedEngagement:
    """What one synthesis is carried out with."""

    options: Values
    """The sampler options in force."""
    reference: Values
    """Those of the same setting without techniques: what savings are counted against."""
    precision: str = "float32"
    guided_steps: int | None = None
    """How many steps of a canvas or block are guided, where not all are."""
    guided_every: int = 1
    """Of these every n-th is."""
    reuses_guidance: bool = False
    """Whether the effect of the last guided step stands for those in between."""
    prefix_every: int = 1
    """Text and reference are computed at every n-th step of a canvas or block."""
    layers_every: int = 1
    """All layers are computed at every n-th step of a canvas or block; the others leave out ``reused_layers``."""
    reused_layers: range = range(0)
    blocks: Blockwise | None = None
    """How the canvas is filled in, where not as a whole."""
    notes: tuple[str, ...] = ()
    """What belongs on a take: sentences about where the result is not what it may be taken for."""
    launching: Launching = PLAIN
    """How steps are launched."""


def engage(info: ModelInfo, setting: Setting) -> MaskedEngagement:
    """Resolve ``setting`` on the loaded model that ``info`` describes.

    Raises :class:`SettingError` that says why it cannot be used.
    """
    require_family(info, setting)
    reference = checked(info.knobs, setting.options, info.title)
    options = in_force(info, setting, reference)
    computed_in, fallen_back = precision.computed_in(info, setting)
    stride = _knobs(setting, guidance_stride.NAME)
    interval = _knobs(setting, guidance_interval.NAME)
    blocks, frozen = _knobs(setting, blockwise.NAME), _knobs(setting, frozen_prefix.NAME)
    plan, launched = None if blocks is None else Blockwise.of(blocks), launching(info, setting)
    every = 1 if frozen is None else int(frozen["every"])
    whole = _knobs(setting, layer_reuse.NAME)
    notes = [*remarks(setting, options), *fallen_back, *([] if options["guidance"] else [NO_GUIDANCE])]
    if plan is not None and plan.text_every > 1:
        if frozen is None and whole is None and launched == PLAIN:
            every = plan.text_every
        else:
            notes.remove(blockwise.text_kept(plan.text_every))
        if launched != PLAIN:
            notes.append(TEXT_COMPUTED)
        elif whole is not None:
            notes.append(ROWS_COMPUTED)
    return MaskedEngagement(
        options,
        reference,
        computed_in,
        None if interval is None else int(interval["steps"]),
        1 if stride is None else int(stride["every"]),
        stride is not None and stride["between"] == guidance_stride.REUSE,
        every,
        1 if whole is None else int(whole["every"]),
        range(0) if whole is None else layer_reuse.reused(info, whole),
        plan,
        tuple(notes),
        launched,
    )


def _knobs(setting: Setting, name: str) -> Values | None:
    entry = setting.engaged(name)
    return None if entry is None else knobs_of(entry)
