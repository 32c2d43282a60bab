"""Importance of each layer, by word errors and by cosine (measured as in figure 2 of the SPADE paper), and savings of
fewer layers (figure 3): memory and time per token by depth.

Memory is counted from shapes: all weights that decoding needs at a depth, at the precision of the tables, with a cache
for the tokens of the sentence. The measured peak of process and card is shown next to it. Times are measured with
layers merely omitted; a retrained student has the same shapes and hence the same times.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from paretone.errors import SettingError
from paretone.measure.memory import PeakMemory
from paretone.models.files.layer_importance import (
    COSINE,
    DIVERGENCE,
    MEASURES,
    WORD_ERROR,
    ImportanceRecord,
    read_record,
)
from paretone.setting.knobs import defaults
from paretone.setting.setting import Setting, UsedTechnique
from paretone.speaking import make_ready, synthesise
from paretone.techniques import spade
from paretone.views.figure import Axis, Bars, BarSeries, Curve, Lines
from paretone.views.view import Findings, Stages, Task, View, count_knob
from paretone.wording import percent
from paretone.wording import times as as_ratio

if TYPE_CHECKING:
    from paretone.models.families.language_network import LanguageNetwork


_AXES = {WORD_ERROR: Axis("WLI", "%"), DIVERGENCE: Axis("KL", "nats"), COSINE: Axis("1 − cosine")}
_TITLES = {
    WORD_ERROR: "Word error rate without the layer",
    DIVERGENCE: "Divergence without the layer",
    COSINE: "Cosine importance of the layer",
}


def compute_importance(task: Task) -> Findings:
    """Draw the existing measurement. Raises :class:`SettingError` if there is none."""
    from paretone.models.files.trained_weights import places_of

    info = task.model.info
    record = read_record(places_of(info), info.fingerprint)
    if record is None:
        raise SettingError(f"The layers of {info.title} are not measured yet; measure them in the Layers panel.")
    measures = [one for one in map(record.measure, MEASURES) if one is not None]
    panels = []
    for one in measures:
        scale, axis = 100 if one.measure == WORD_ERROR else 1, _AXES[one.measure]
        notes = tuple(f"rank {first + 1} to {last + 1}" for first, last in one.ranks)
        values, low, high = (tuple(scale * value for value in part) for part in (one.values, one.low, one.high))
        series = BarSeries(axis.title, values, low, high, notes or ("",) * len(values))
        panels.append(Bars(_TITLES[one.measure], Axis("Layer"), axis, tuple(map(str, range(len(values)))), (series,)))
    return Findings(tuple(panels), _importance_caption(record), across=2)


def _importance_caption(record: ImportanceRecord) -> str:
    deciding, half = record.deciding, record.layers // 2
    by = {WORD_ERROR: "word error rate", DIVERGENCE: "divergence", COSINE: "cosine"}[deciding.measure]
    words = (
        f"By {by} the most important layers are {_listed(record.order[:3])}, the least important ones "
        f"{_listed(record.order[-3:])}; half of the layers keeps {_listed(record.retained(half))}. "
    )
    errors, cosine = record.measure(WORD_ERROR), record.measure(COSINE)
    other = errors if errors is not None else record.measure(DIVERGENCE)
    if other is not None and cosine is not None:
        by_cosine = sorted(range(record.layers), key=lambda layer: -cosine.values[layer])[:half]
        both = len({*record.retained(half)} & {*by_cosine})
        words += (
            f"Of the {half} layers that the cosine would keep, {both} are among those that "
            f"{'word errors' if other is errors else 'the divergence'} would. "
        )
    run_away = sum(errors.run_away) if errors is not None else 0
    if run_away:
        words += f"{run_away} syntheses did not stop by themselves; they count with what was recognised. "
    return words + f"{deciding.utterances} utterances; whiskers are 95 % bootstrap intervals over them."


def _listed(layers: tuple[int, ...]) -> str:
    return ", ".join(map(str, layers))


LAYER_IMPORTANCE = View(
    name="layer-importance",
    title="Layer importance",
    question="Which layers of a speech language model matter?",
    source="SPADE (arXiv 2509.20802), figure 2",
    families=("language",),
    compute=compute_importance,
)


_MEMORIES = {"cpu": "process"}
PAPER = (("CosyVoice 2", 24, 12, 0.86), ("LLaSA", 16, 8, 0.80))
"""Models with their layers, layers kept, and remaining share of the memory, as published."""


def compute_depth(task: Task) -> Findings:
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
    # The process, and the card if there is one; the weights are in the last of them.
    peaks: dict[str, dict[int, int]] = {kind: {} for kind in dict.fromkeys(("cpu", str(model.own.tokens.device)))}
    for round_number in range(rounds):
        for depth, setting in settings.items():
            make_ready(model, setting, task.utterance.voice, observer=task.observer)
            text = f"Round {round_number + 1} of {rounds}: {depth} of {info.layers} layers"
            watched = {kind: PeakMemory(kind) for kind in peaks}
            said = synthesise(model, task.utterance.text, task.utterance.voice, setting, (), work.part(100, text))
            for kind, memory in watched.items():
                peaks[kind][depth] = max(peaks[kind].get(depth, 0), memory.peak_bytes)
            seconds[depth].append(said.measurements.backbone_seconds / said.measurements.tokens)
            tokens[depth] = said.measurements.tokens
    longest = tokens[info.layers]
    counted = {depth: _bytes(model.own, depth, longest) for depth in depths}
    idle = {depth: _bytes(model.own, info.layers, 0)[0] - _bytes(model.own, depth, 0)[0] for depth in depths}
    *_, place = peaks
    peaks[place] = {depth: peaks[place][depth] - idle[depth] for depth in depths}
    times = {depth: 1000 * min(seconds[depth]) for depth in depths}
    panels = _panels(depths, counted, times, tokens, peaks)
    return Findings(panels, _depth_caption(info.layers, counted, times, peaks), across=3)


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
    depths: Sequence[int],
    memory: dict[int, tuple[int, int]],
    times: dict[int, float],
    tokens: dict[int, int],
    peaks: dict[str, dict[int, int]],
) -> tuple[Lines, ...]:
    places, axis = tuple(map(float, depths)), Axis("Layers kept")
    mebibytes = tuple(sum(memory[depth]) / 2**20 for depth in depths)
    notes = tuple(
        f"{memory[depth][0] / 2**20:.1f} MiB of weights, {memory[depth][1] / 2**20:.1f} MiB of cache"
        for depth in depths
    )
    counted = Curve("counted", places, mebibytes, notes=notes)
    spoken = tuple(f"{tokens[depth]} tokens" for depth in depths)
    measured = Curve("measured", places, tuple(times[depth] for depth in depths), notes=spoken)
    whole = (
        Curve(_MEMORIES.get(kind, "card"), places, tuple(own[depth] / 2**20 for depth in depths))
        for kind, own in peaks.items()
    )
    return (
        Lines("Memory of the language model", axis, Axis("Weights and cache", "MiB"), (counted,)),
        Lines("Time of a token", axis, Axis("Language model, per token", "ms"), (measured,)),
        Lines("Memory of the whole system", axis, Axis("Measured peak", "MiB"), tuple(whole)),
    )


def _depth_caption(
    layers: int, memory: dict[int, tuple[int, int]], times: dict[int, float], peaks: dict[str, dict[int, int]]
) -> str:
    half = min(memory, key=lambda depth: abs(depth - layers / 2))
    left = sum(memory[half]) / sum(memory[layers])
    published = " and ".join(f"{percent(1 - share)} for {name}" for name, _, _, share in PAPER)
    kind, own = list(peaks.items())[-1]
    return (
        f"{half} of {layers} layers need {percent(left)} of the language model's memory, {percent(1 - left)} less, and "
        f"a token takes {as_ratio(times[layers] / times[half])} less time. The paper saves {published} at half "
        f"the layers, of the memory of the whole system. Measured, the {_MEMORIES.get(kind, 'card')} takes "
        f"{own[half] / 2**20:.0f} instead of {own[layers] / 2**20:.0f} MiB, {percent(1 - own[half] / own[layers])} "
        "less; layers that are loaded here but not run are subtracted."
    )


DEPTH = View(
    name="depth",
    title="Memory and time by depth",
    question="What do fewer layers save?",
    source="SPADE (arXiv 2509.20802), figure 3",
    families=("language",),
    knobs=lambda layers: (
        count_knob(
            "depths",
            "Depths",
            "Number of depths, from one layer to all; half of the layers is always included, as in the paper.",
            max(2, min(6, layers)),
            max(2, layers),
            least=2,
        ),
        count_knob("rounds", "Rounds", "Number of runs per depth; the best time counts.", 2, 20),
    ),
    compute=compute_depth,
)
