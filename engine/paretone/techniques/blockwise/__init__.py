"""Blockwise streaming of masked models: the canvas is filled and played block by block.

The canvas passes the network at every step, with everything after the block still masked; only frames of the block may
be committed, on their own schedule. The first block takes few steps for early audio. Later blocks take as many steps as
the available audio allows, so that playback does not pause; a block that turns out too slow is cut short at run time
(:mod:`paretone.models.families.pacing`). If not even the minimum of steps fits, playback pauses and the take says so.

A seed fixes the length of the canvas, the bounds of its blocks, all random numbers, and the first block's speech; also
the rest, unless steps follow measured times. For fixed speech, either all blocks take their steps, or as many as fit a
given time per step (``step_time``).

The order of commits differs from upstream's, which fills the first codebook of the whole clip before deeper ones; so
the speech differs and must be judged. A limited look-ahead saves further time and is an approximation: the network sees
a shorter clip than it speaks.

Text and reference are most rows of a step. They are computed at the first step of a block and at every n-th after it;
in between, the block attends to their stored values: an unpublished experiment
(:mod:`paretone.techniques.frozen_prefix` does so on whole canvases). CUDA graphs and compiled code run whole passes:
with them, text and reference are computed at every step.

The defaults were measured on the bundled model (``resources/docs/omnivoice.md``), with words as intelligible as on the
whole canvas. omnivoice-fast has 32 frames in 8 steps first, and an unlimited look-ahead.

Sources: pavanyellow/omnivoice-fast (blocks of 32 frames, 8 steps for the first, decoding of the whole prefix); here
decoding is exact.
"""

from __future__ import annotations

from dataclasses import replace

from paretone.figures.glyphs import Mark
from paretone.setting.knobs import Switch, Values, amount, count
from paretone.setting.plan import Blocks, MaskedPlan, Part
from paretone.setting.setting import Published
from paretone.techniques.base import Context, Paper, Technique, ordinal

NAME = "blockwise"


def resolve(context: Context, knobs: Values, plan: MaskedPlan) -> MaskedPlan:
    """Divide the canvas; keep text and reference between steps unless another technique decides about them."""
    every, divided = int(knobs["text_every"]), blocks(knobs)
    plan = replace(plan, blocks=divided).noted(
        "Spoken block by block: codes were filled in in another order than on the whole canvas."
    )
    if divided.look_ahead is not None:
        plan = plan.noted(
            f"The network saw {divided.look_ahead} frames after each block instead of all, which is an approximation."
        )
    if divided.adaptive:
        plan = plan.noted("Steps of later blocks follow measured times, so another take of the same seed may differ.")
    if every == 1:
        return plan
    launching, skipping = context.title_in("launching"), context.title_in("skipping")
    if launching:
        return plan.noted(f"Text and reference were computed at every step: {launching} takes whole passes.")
    if skipping:
        return plan.noted(f"How often text and reference were computed follows from: {skipping}.")
    run = Part.of("paretone.models.kernels.kept_prefix:KeptPrefixRun", every=every)
    return replace(plan, run=run).noted(
        f"Text and reference were computed at the first and every {ordinal(every)} step of a block only, which is an "
        "unpublished approximation."
    )


def blocks(knobs: Values) -> Blocks:
    return Blocks(
        int(knobs["block"]),
        int(knobs["first_block"]),
        int(knobs["first_steps"]),
        int(knobs["later_steps"]),
        bool(knobs["adaptive"]),
        float(knobs["step_time"]) / 1000,
        int(knobs["look_ahead"]) or None,
    )


def describe(knobs: Values) -> str:
    plan = blocks(knobs)
    later = f"up to {plan.later_steps}" if plan.adaptive or plan.step_seconds else str(plan.later_steps)
    ahead = "" if plan.look_ahead is None else f", looking {plan.look_ahead} frames ahead"
    every = int(knobs["text_every"])
    text = f", text and reference at every {ordinal(every)}" if every > 1 else ""
    return (
        f"{plan.first_size} frames in {plan.first_steps} steps first, then blocks of {plan.size} in {later} "
        f"steps{ahead}{text}"
    )


TECHNIQUE = Technique(
    name=NAME,
    title="Blockwise streaming",
    summary="Fills in speech block by block and plays it meanwhile: earlier first audio, more computation.",
    benefit="First sound early: fills in block by block",
    improves="first_audio_seconds",
    paper=Paper("OmniVoice blockwise streaming", "github.com/pavanyellow/omnivoice-fast"),
    families=("masked",),
    slot="blocks",
    place=100,
    mark=Mark("violet", "triangle"),
    knobs=(
        count(
            "block",
            "Block",
            "Largest number of frames filled in together after the first block (40 ms each).",
            default=32,
            unit="frames",
            between=(8, 250),
        ),
        count(
            "first_block",
            "First block",
            "Frames of the first block: fewer give earlier audio. The decoder needs some frames of the next block "
            "to finish the last of them; the finished ones must last until that block is there.",
            default=24,
            unit="frames",
            between=(4, 250),
        ),
        count(
            "first_steps",
            "Steps of the first block",
            "Fewer give earlier audio and may sound worse.",
            default=4,
            between=(1, 64),
        ),
        count(
            "later_steps",
            "Steps of later blocks",
            "Number of steps; the maximum if steps follow the time left.",
            default=16,
            between=(1, 64),
        ),
        Switch(
            "adaptive",
            "Follow the time left",
            "Limit later blocks to the steps that fit before playback catches up; another take of the same seed may "
            "then differ.",
            default=True,
        ),
        amount(
            "step_time",
            "Assumed step",
            "If steps do not follow measured times: later blocks take as many as fit if a step takes this long, equal "
            "for every take; 0 gives every block all its steps.",
            default=0.0,
            between=(0.0, 1000.0),
            unit="ms",
            step=5.0,
            lowest="all steps",
        ),
        count(
            "look_ahead",
            "Look ahead",
            "Number of masked frames after a block that the network sees; 0: all. Other values are faster and "
            "approximate.",
            default=16,
            unit="frames",
            between=(0, 500),
            lowest="all",
        ),
        count(
            "text_every",
            "Text and reference (experiment)",
            "Computed at the first step of a block and at every n-th step after it, which is faster and "
            "approximate; 1: at every step.",
            default=4,
            symbol="n",
            between=(1, 64),
        ),
    ),
    benches=(("omnivoice-first-audio", f"{__name__}.bench"),),
    published=(
        Published(
            "blocks",
            "blocks of 32 frames",
            ("OmniVoice",),
            Values(
                {"block": 32, "first_block": 32, "first_steps": 8, "later_steps": 32, "look_ahead": 0},
                adaptive=False,
                step_time=0.0,
                text_every=1,
            ),
            Values(shift=0.1, guidance=2.0, layer_penalty=5.0, position_temperature=5.0, class_temperature=0.0),
            remark="Every block is decoded exactly, once the network has filled what it needs; the source decodes the "
            "whole prefix and holds back two frames.",
        ),
    ),
    resolve=resolve,
    describe=describe,
)
