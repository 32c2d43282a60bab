"""Importance of each layer: divergence and word error rate without it, and the change of direction by it.

The divergence needs no audio and one pass a layer: the cheap proxy. The word error rate is the paper's measure (WLI);
it is dominated by noise on few utterances, so it comes with an interval, and its ranking too. A study that leaves out
one layer after the other (``leave_one_layer_out``) measures it as well. Torch-free.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np

from paretone.errors import StudyError
from paretone.measure.estimates import PERCENTILES, ends, picks
from paretone.measure.evaluation.judges import Verdict
from paretone.models.files.layer_importance import WORD_ERROR, ImportanceRecord, LayerImportance
from paretone.setting.setting import Setting
from paretone.studies.store import Store
from paretone.studies.study import Study
from paretone.techniques.spade import NAME, NONE

DRAWS = 2000


def bootstrapped(
    measure: str, each: np.ndarray, weights: np.ndarray | None = None, baseline: float = 0.0, draws: int = DRAWS
) -> LayerImportance:
    """The importance that results from ``each`` (utterances, layers): mean over utterances, weighted by ``weights``
    (utterances,), with 95 % intervals of the means and of the ranks over resampled utterances.

    For a word error rate, ``each`` holds errors a word of a sentence and ``weights`` its number of words.
    """
    utterances = len(each)
    weights = np.ones(utterances) if weights is None else np.asarray(weights, float)
    chosen = picks(utterances, draws)
    drawn = (each * weights[:, None])[chosen].sum(1) / weights[chosen].sum(1)[:, None]
    # Equal layers share all the ranks that they take up together.
    larger = (drawn[:, None, :] > drawn[:, :, None]).sum(2)
    at_least = (drawn[:, None, :] >= drawn[:, :, None]).sum(2) - 1
    low, high = ends(drawn)
    first = np.percentile(larger, PERCENTILES[0], axis=0, method="nearest")
    last = np.percentile(at_least, PERCENTILES[1], axis=0, method="nearest")
    means = (each * weights[:, None]).sum(0) / weights.sum()
    return LayerImportance(
        measure,
        _floats(means),
        _floats(low),
        _floats(high),
        tuple((int(one), int(two)) for one, two in zip(first, last, strict=True)),
        baseline,
        utterances,
    )


def _floats(values: Iterable[float]) -> tuple[float, ...]:
    return tuple(float(f"{value:.5g}") for value in values)


_JUDGE = "words"


def importance(store: Store, study: Study | None = None) -> ImportanceRecord | None:
    """Word errors without each layer, as :mod:`paretone.techniques.spade.measuring` measures them; ``None`` for a study
    of other things.

    Counted are the takes that there are of every layer; where ``study`` is given, its own only, and none that were made
    before its file was changed. Raises :class:`StudyError` if there is none, or no judge listened.
    """
    about = store.about()
    layers = int(about.get("definition", {}).get("layers", 0))
    if not about.get("definition", {}).get("leave_one_layer_out"):
        return None
    stored = store.settings()
    settings = {one.key: _left_out(one.setting, layers) for one in stored}
    # A grid next to it may bring whole models with other options.
    baselines = {one.baseline for one in stored if settings[one.key] not in (None, -1)}
    settings = {key: -1 if layer is None and key not in baselines else layer for key, layer in settings.items()}
    own = None if study is None else {cell for one in study.candidates for cell in study.cells(one)}
    heard: dict[int | None, dict[tuple[str, int], Verdict]] = defaultdict(dict)
    takes = [take for take in store.takes() if own is None or take.cell in own]
    for take in takes:
        verdict = next((one for one in take.verdicts if one.judge == _JUDGE), None)
        if take.cell.round == 0 and verdict is not None and settings[take.cell.setting] != -1:
            heard[settings[take.cell.setting]][take.cell.utterance, take.cell.seed] = verdict
    wanted = [None, *range(layers)]
    shared = sorted(set.intersection(*(set(heard[layer]) for layer in wanted)))
    if not shared:
        raise StudyError(
            f"The study in {store.folder} has no utterance that was spoken without each of the {layers} layers and "
            f"heard by the judge {_JUDGE!r}; let it run to its end, with that judge."
        )
    words = np.array([heard[None][one].figures["words"] for one in shared])
    each = np.array([[_edits(heard[layer], one) for layer in range(layers)] for one in shared]) / words[:, None]
    with_all = sum(_edits(heard[None], one) for one in shared) / words.sum()
    measured = bootstrapped(WORD_ERROR, each, words, baseline=float(with_all))
    return ImportanceRecord(
        str(about["model"]),
        str(about["checkpoint"]),
        layers,
        (replace(measured, utterances=len(shared)),),
        seconds=sum(take.busy_seconds for take in takes),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        machine="; ".join(dict.fromkeys(take.machine for take in takes)),
        notes=(f"Word errors measured by the study “{about['title']}”.",),
    )


def _left_out(setting: Setting, layers: int) -> int | None:
    """The layer that ``setting`` leaves out; ``None`` for the whole model, -1 for anything else."""
    if not setting.techniques:
        return None
    used = setting.technique(NAME)
    if used is None or len(setting.techniques) > 1 or used.knobs["recovery"] != NONE:
        return -1
    kept = set(map(int, filter(None, str(used.knobs["layers"]).split(","))))
    left_out = set(range(layers)) - kept
    return left_out.pop() if len(left_out) == 1 else -1


def _edits(heard: Mapping[tuple[str, int], Verdict], one: tuple[str, int]) -> float:
    return heard[one].figures["edits"]
