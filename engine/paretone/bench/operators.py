"""Time of a run on a CPU by kind of operator."""

from __future__ import annotations

from collections.abc import Callable

from paretone.measure.profiler import profile_operators

KINDS = {
    "matrix products": ("addmm", "::mm", "bmm", "mkl_linear", "linear"),
    "attention": ("scaled_dot_product",),
    "convolutions": ("convolution", "conv"),
    "activations": ("gelu", "mish", "softplus", "tanh", "silu", "sigmoid"),
    "norms": ("norm",),
    "copies": ("copy", "cat", "clone", "contiguous", "stack"),
    "sums and products": ("::add", "::mul", "::sub", "::neg", "addcmul"),
}
"""Parts of operators' names, by kind; the first kind that fits counts."""
REST = "everything else"


def seconds_by_kind(run: Callable[[], object]) -> dict[str, float]:
    """Seconds that one ``run`` spends in operators of each kind, without the operators that these call."""
    with profile_operators() as profiler:
        run()
    seconds = dict.fromkeys((*KINDS, REST), 0.0)
    for event in profiler.key_averages():
        kind = next((kind for kind, parts in KINDS.items() if any(part in event.key for part in parts)), REST)
        seconds[kind] += event.self_cpu_time_total / 1e6
    return seconds
