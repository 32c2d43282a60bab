"""Savings of fewer layers: figure 3 of the SPADE paper, memory by depth, and with it the time of a token.

Memory is counted by shapes: every weight that decoding needs at a depth, at the precision of the tables, with a cache
for the tokens of the sentence. Times are measured on layers that were only left out; a retrained student of a depth
takes the same, as it has the same shapes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from paretone.errors import SettingError
from paretone.setting.knobs import Effect, Knob, Number, defaults
from paretone.setting.setting import Setting, UsedTechnique
from paretone.speaking import make_ready, synthesise
from paretone.techniques import spade
from paretone.views.figure import Axis, Curve, Lines
from paretone.views.view import Findings, Stages, Task, View
from paretone.wording import percent

if TYPE_CHECKING:
    from paretone.models.families.language_network import LanguageNetwork

PAPER = {"CosyVoice 2": (24, 12, 0.86), "LLaSA": (16, 8, 0.80)}
"""Layers, layers kept, and share of the memory left, as published."""


def knobs(layers: int) -> tuple[Knob, ...]:
    """Knobs: number of depths, and of rounds."""
    return (
        Number(
            "depths",
            "Depths",
            "Number of depths, from one layer to all; half of the layers is always included, as in the paper.",
            default=max(2, min(6, layers)),
            minimum=2,
            maximum=max(2, layers),
            effect=Effect.NEXT_VIEW,
            whole=True,
        ),
        Number(
            "rounds",
            "Rounds",
            "Number of runs per depth; the best time counts.",
            default=2,
            minimum=1,
            maximum=20,
            effect=Effect.NEXT_VIEW,
            whole=True,
        ),
    )


def compute(task: Task) -> Findings:
    """Speak the sentence at every depth."""
    from paretone.models.families.language import LanguageSpeech

    model, info = task.model, task.model.info
    if not isinstance(model, LanguageSpeech):
        raise SettingError(f"{info.title} is no speech language model; load one to see what fewer layers save.")
    if not info.layer_order:
        raise SettingError(
            f"The importance of {info.title}'s layers is not measured yet; measure it in the Layers panel first."
        )
    count, rounds = int(task.knobs["depths"]), int(task.knobs["rounds"])
    evenly = {round(1 + (info.layers - 1) * index / (count - 1)) for index in range(count)}
    depths = sorted({*evenly, max(1, info.layers // 2)})
    work = Stages(task.observer, 100 * len(depths) * rounds)
    settings = {depth: _pruned(task.setting.baseline, depth, info.layers) for depth in depths}
    seconds: dict[int, list[float]] = {depth: [] for depth in depths}
    tokens: dict[int, int] = {}
    for round_number in range(rounds):
        for depth, setting in settings.items():
            make_ready(model, setting, task.utterance.voice, observer=task.observer)
            text = f"Round {round_number + 1} of {rounds}: {depth} of {info.layers} layers"
            said = synthesise(model, task.utterance.text, task.utterance.voice, setting, (), work.part(100, text))
            seconds[depth].append(said.measurements.backbone_seconds / said.measurements.tokens)
            tokens[depth] = said.measurements.tokens
    longest = tokens[info.layers]
    memory = {depth: _bytes(model.own, depth, longest) for depth in depths}
    times = {depth: 1000 * min(seconds[depth]) for depth in depths}
    return Findings(_panels(depths, memory, times, tokens), _caption(info.layers, memory, times), across=2)


def _pruned(plain: Setting, depth: int, layers: int) -> Setting:
    if depth == layers:
        return plain
    chosen = defaults(spade.TECHNIQUE.knobs).replace(depth=depth, recovery=spade.NONE)
    return plain.with_technique(UsedTechnique(spade.NAME, chosen))


def _bytes(network: LanguageNetwork, depth: int, tokens: int) -> tuple[int, int]:
    """Bytes of the weights with ``depth`` layers, and of the cache for ``tokens`` tokens."""
    from paretone.models.networks.causal import CausalLayer
    from paretone.models.networks.shapes import without_weights

    config, tables = network.tokens.transformer.config, (*network.tokens.parameters(), *network.tables.values())
    with without_weights():
        layer = sum(one.numel() for one in CausalLayer(config).parameters())
    element = network.tokens.head.element_size()
    unique = {one.data_ptr(): one.nbytes for one in tables}
    weights = (depth * layer + config.hidden) * element + sum(unique.values())
    return weights, depth * 2 * config.key_width * tokens * element


def _panels(
    depths: Sequence[int], memory: dict[int, tuple[int, int]], times: dict[int, float], tokens: dict[int, int]
) -> tuple[Lines, ...]:
    places = tuple(float(depth) for depth in depths)
    axis = Axis("Layers kept")
    mebibytes = {depth: sum(one) / 2**20 for depth, one in memory.items()}
    notes = tuple(
        f"{memory[depth][0] / 2**20:.1f} MiB of weights, {memory[depth][1] / 2**20:.1f} MiB of cache"
        for depth in depths
    )
    return (
        Lines(
            "Memory of the language model",
            axis,
            Axis("Weights and cache", "MiB"),
            (Curve("counted", places, tuple(mebibytes[depth] for depth in depths), notes=notes),),
        ),
        Lines(
            "Time of a token",
            axis,
            Axis("Language model, per token", "ms"),
            (
                Curve(
                    "measured",
                    places,
                    tuple(times[depth] for depth in depths),
                    notes=tuple(f"{tokens[depth]} tokens" for depth in depths),
                ),
            ),
        ),
    )


def _caption(layers: int, memory: dict[int, tuple[int, int]], times: dict[int, float]) -> str:
    half = min(memory, key=lambda depth: abs(depth - layers / 2))
    left = sum(memory[half]) / sum(memory[layers])
    published = " and ".join(f"{percent(1 - share)} for {name}" for name, (_, _, share) in PAPER.items())
    return (
        f"{half} of {layers} layers need {percent(left)} of the language model's memory, {percent(1 - left)} less, and "
        f"a token takes {times[layers] / times[half]:.2f}× less time. The paper saves {published} at half the layers, "
        "of the memory of the whole system."
    )


VIEW = View(
    name="depth",
    title="Memory and time by depth",
    question="What do fewer layers save?",
    source="SPADE (arXiv 2509.20802), figure 3",
    families=("language",),
    knobs=knobs,
    compute=compute,
)
