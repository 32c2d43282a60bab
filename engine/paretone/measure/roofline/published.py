"""The analytic table of the roofline post ("Why Is Diffusion TTS Slow? A Roofline Analysis of OmniVoice Inference") for
a clip of ten seconds on an H100, from the formulas used for loaded models. Torch-free.

Its constants are round: 10¹⁵ operations in bfloat16 and 3 · 10¹² bytes per second; in float32 it names 67 · 10¹²
operations. Both branches count 300 tokens; the shorter
unconditional one is taken to be as long as the other.
"""

from __future__ import annotations

from paretone.measure.roofline import counts
from paretone.measure.roofline.ceilings import Ceilings
from paretone.measure.roofline.counts import Work
from paretone.measure.roofline.report import (
    ATTENTION,
    DECODER,
    EMBEDDING,
    FEED_FORWARD,
    HEAD,
    NORMS,
    PROJECTIONS,
    SAMPLING,
    Component,
    Phase,
    RooflineReport,
)
from paretone.setting.setting import Setting

PRECISION = "bfloat16"
CEILINGS = Ceilings(
    "H100 SXM, as the post rounds it",
    "seconds of the device",
    {PRECISION: 1e15, "float32": 67e12},
    {PRECISION: 3e12, "float32": 3e12},
    launch_seconds=11e-6,
    stated="from the post: 11 µs per launch in eager bfloat16 (0.67 ms per layer over 61 kernels)",
)
BRANCHES, TOKENS, STEPS, LAYERS = 2, 300, 32, 28
HIDDEN, QUERIES, KEYS, INNER = 1024, 2048, 1024, 3072
CODEBOOKS, ENTRIES = 8, 1025
KERNELS_PER_LAYER = 61
"""Kernels per layer of Hugging Face's eager Qwen3 in bfloat16, without views."""
SCORINGS = 3
"""Log-softmaxes per step: of both branches, and of the guided result."""


def works() -> dict[str, Work]:
    rows = BRANCHES * TOKENS
    return {
        EMBEDDING: counts.looked_up(rows, HIDDEN, CODEBOOKS),
        PROJECTIONS: counts.projections(rows, HIDDEN, QUERIES, KEYS),
        ATTENTION: counts.attention(BRANCHES, TOKENS, QUERIES, KEYS),
        FEED_FORWARD: counts.feed_forward(rows, HIDDEN, INNER, gated=True),
        NORMS: counts.norm(2 * rows * HIDDEN + rows * (QUERIES + KEYS)),
        HEAD: counts.linear(rows, HIDDEN, CODEBOOKS * ENTRIES),
        SAMPLING: counts.log_softmax(SCORINGS * CODEBOOKS * TOKENS * ENTRIES),
    }


_COLUMNS = EMBEDDING, ATTENTION, FEED_FORWARD, NORMS, HEAD, SAMPLING, DECODER
MEASURED = {
    "float32": dict(zip(_COLUMNS, (1.4e-3, 415.1e-3, 280.2e-3, 44.9e-3, 8.9e-3, 23.6e-3, 9.7e-3), strict=True)),
    PRECISION: dict(zip(_COLUMNS, (4.3e-3, 399.3e-3, 73.7e-3, 126.9e-3, 1.5e-3, 77.5e-3, 12.5e-3), strict=True)),
}
"""Seconds per clip measured in the post under a profiler; its attention includes the projections."""


def report(ceilings: Ceilings = CEILINGS) -> RooflineReport:
    """The table, counted but not measured, under the post's ceilings or those of another card."""
    in_layers = {PROJECTIONS, ATTENTION, FEED_FORWARD, NORMS}
    components = tuple(
        Component(name, STEPS * (LAYERS if name in in_layers else 1), work, PRECISION) for name, work in works().items()
    )
    shape = f"{BRANCHES} branches × {TOKENS} tokens, {LAYERS} layers"
    launches, per_layer = LAYERS * KERNELS_PER_LAYER + 20, (KERNELS_PER_LAYER,) * LAYERS
    phase = Phase("evaluation", "Evaluations", STEPS, components, None, launches, per_layer, shape)
    title, setting = "OmniVoice, 10 s, as the roofline post counts it", Setting("OmniVoice")
    note = "Norms are left out of the post's table: they can be part of the products around them."
    return RooflineReport("OmniVoice", title, setting, ceilings, (phase,), audio_seconds=10.0, notes=(note,))
