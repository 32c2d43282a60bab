"""Importance of each layer, by word errors and by cosine: figure 2 of the SPADE paper, as it was measured."""

from __future__ import annotations

from paretone.errors import SettingError
from paretone.models.files.layer_importance import (
    COSINE,
    DIVERGENCE,
    MEASURES,
    WORD_ERROR,
    ImportanceRecord,
    LayerImportance,
    read_record,
)
from paretone.views.figure import Axis, Bars, BarSeries
from paretone.views.view import Findings, Task, View

_AXES = {WORD_ERROR: Axis("WLI", "%"), DIVERGENCE: Axis("KL", "nats"), COSINE: Axis("1 − cosine")}
_TITLES = {
    WORD_ERROR: "Word error rate without the layer",
    DIVERGENCE: "Divergence without the layer",
    COSINE: "Cosine importance of the layer",
}


def compute(task: Task) -> Findings:
    """Draw the measurement at hand. Raises :class:`SettingError` if there is none."""
    from paretone.models.files.language_weights import places_of

    info = task.model.info
    record = read_record(places_of(info), info.fingerprint)
    if record is None:
        raise SettingError(f"The layers of {info.title} are not measured yet; measure them in the Layers panel.")
    measures = [one for one in map(record.measure, MEASURES) if one is not None]
    return Findings(tuple(_panel(one) for one in measures), _caption(record), across=2)


def _panel(one: LayerImportance) -> Bars:
    scale = 100 if one.measure == WORD_ERROR else 1
    notes = tuple(
        "" if not one.ranks else f"rank {one.ranks[layer][0] + 1} to {one.ranks[layer][1] + 1}"
        for layer in range(len(one.values))
    )
    values, low, high = (tuple(scale * value for value in part) for part in (one.values, one.low, one.high))
    groups = tuple(str(layer) for layer in range(len(one.values)))
    series = BarSeries(_AXES[one.measure].title, values, low, high, notes)
    return Bars(_TITLES[one.measure], Axis("Layer"), _AXES[one.measure], groups, (series,))


def _caption(record: ImportanceRecord) -> str:
    deciding, half = record.deciding, record.layers // 2
    by = {WORD_ERROR: "word error rate", DIVERGENCE: "divergence", COSINE: "cosine"}[deciding.measure]
    words = (
        f"By {by} the most important layers are {_listed(record.order[:3])}, the least important ones "
        f"{_listed(record.order[-3:])}; half of the layers keeps {_listed(record.retained(half))}. "
    )
    errors, cosine = record.measure(WORD_ERROR), record.measure(COSINE)
    other = errors if errors is not None else record.measure(DIVERGENCE)
    if other is not None and cosine is not None:
        both = len({*record.retained(half)} & {*_top(cosine, half)})
        words += (
            f"Of the {half} layers that the cosine would keep, {both} are among those that "
            f"{'word errors' if other is errors else 'the divergence'} would. "
        )
    run_away = sum(errors.run_away) if errors is not None else 0
    if run_away:
        words += f"{run_away} syntheses did not stop by themselves; they count with what was recognised. "
    return words + f"{deciding.utterances} utterances; whiskers are 95 % bootstrap intervals over them."


def _top(one: LayerImportance, count: int) -> list[int]:
    return sorted(range(len(one.values)), key=lambda layer: -one.values[layer])[:count]


def _listed(layers: tuple[int, ...]) -> str:
    return ", ".join(map(str, layers))


VIEW = View(
    name="layer-importance",
    title="Layer importance",
    question="Which layers of a speech language model matter?",
    source="SPADE (arXiv 2509.20802), figure 2",
    families=("language",),
    compute=compute,
)
