"""Importance of each layer: divergence and word error rate without it, and its change of direction.

The divergence needs no audio and one pass per layer: the cheap proxy. The word error rate is the paper's measure (WLI);
with few utterances it is mostly noise, so it and its ranking come with intervals. A study that omits one layer after
another (``leave_one_layer_out``) measures it as well. Torch-free.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from paretone.errors import PlainError, StudyError
from paretone.export.accounts import FEWER_LAYERS, Carried, whole_line
from paretone.export.targets import Target, lacking
from paretone.fields import Fields
from paretone.measure.estimates import PERCENTILES, ends, picks
from paretone.measure.evaluation.judges import Verdict
from paretone.models import catalogue
from paretone.models.files.layer_importance import FILE, WORD_ERROR, ImportanceRecord, LayerImportance, read_record
from paretone.paths import own_place
from paretone.setting.knobs import Values, checked
from paretone.setting.setting import Setting, UsedTechnique
from paretone.studies.hooks import Finding
from paretone.studies.store import Store
from paretone.studies.study import Study
from paretone.techniques.spade import NAME, NONE, TECHNIQUE, LayersMeasured

DRAWS = 2000


def bootstrapped(
    measure: str, each: np.ndarray, weights: np.ndarray | None = None, baseline: float = 0.0, draws: int = DRAWS
) -> LayerImportance:
    """Importance from ``each`` (utterances, layers): mean over utterances, weighted by ``weights`` (utterances,), with
    95 % intervals of the means and of the ranks over resampled utterances. For a word error rate, ``each`` holds errors
    per word of a sentence, and ``weights`` its number of words."""
    utterances = len(each)
    weights = np.ones(utterances) if weights is None else np.asarray(weights, float)
    chosen = picks(utterances, draws)
    drawn = (each * weights[:, None])[chosen].sum(1) / weights[chosen].sum(1)[:, None]
    # Equal layers share all ranks that they occupy together.
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
    """Word error rates without each layer, as in :mod:`paretone.techniques.spade.measuring`, or ``None``. Counts the
    takes that exist for every layer; with ``study``, only takes of its current definition. Raises :class:`StudyError`
    if there are none, or no judge listened."""
    about = store.about()
    layers = int(about.get("definition", {}).get("layers", 0))
    if not about.get("definition", {}).get("leave_one_layer_out"):
        return None
    stored = store.settings()
    settings = {one.key: _left_out(one.setting, layers) for one in stored}
    # A grid in the same study may include whole models with other options.
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
    """The layer that ``setting`` omits; ``None`` for the whole model, -1 for anything else."""
    if not setting.techniques:
        return None
    used = setting.technique(NAME)
    if used is None or len(setting.techniques) > 1 or used.knobs.get("recovery") != NONE:
        return -1
    kept = set(map(int, filter(None, str(used.knobs["layers"]).split(","))))
    left_out = set(range(layers)) - kept
    return left_out.pop() if len(left_out) == 1 else -1


def _edits(heard: Mapping[tuple[str, int], Verdict], one: tuple[str, int]) -> float:
    return heard[one].figures["edits"]


LEAVE_OUT = "leave_one_layer_out"
"""Field of a study's file that adds one setting without each layer."""
LAYERS = "layers"


def settings(fields: Fields, model: str, options: Values) -> Iterator[tuple[Setting, str]]:
    """Yield one setting without each layer of a language model, for importance by words."""
    if not fields.flag(LEAVE_OUT):
        return
    layers = fields.whole(LAYERS, 0, minimum=2)
    for layer in range(layers):
        kept = ",".join(str(one) for one in range(layers) if one != layer)
        knobs = checked(TECHNIQUE.knobs, {"recovery": NONE, "layers": kept}, TECHNIQUE.title)
        yield Setting(model, options, (UsedTechnique(NAME, knobs),)), f"without layer {layer}"


def files(store: Store) -> dict[str, str]:
    found = importance(store)
    return {} if found is None else {FILE: found.to_json()}


KIND = "student"


def carried(target: Target, entry: UsedTechnique, artefact: object) -> Carried:
    """Carry the student in place of the model if the target runs language models."""
    if FEWER_LAYERS not in target.takes:
        return lacking(target, entry)
    return Carried((whole_line(entry, "the model that is written has these layers"),))


def finished(study: Study, store: Store) -> Finding | None:
    """Merge the word error rates without each layer into the user's ``layers.json`` of the model, replacing earlier
    ones; other measures are kept. ``None`` for other studies. Nothing is merged if takes are missing, if the existing
    record is of another checkpoint, or cannot be read or written; the sentence says which. The study stays."""
    path = own_place(study.model) / FILE
    try:
        found = importance(store, study)
        if found is None:
            return None
        record = _merged(study, found, path)
        record.write(path)
    except PlainError as error:
        sentence = f"The word error rates without each layer were not merged. {error}"
        return Finding(sentence, (("layers", ""),))
    sentence = (
        f"Merged the word error rates without each layer into {path}, which SPADE and the panel Layers "
        f"read. Layers, most important first: {', '.join(map(str, record.order))}."
    )
    return Finding(sentence, (("layers", str(path)),), LayersMeasured(record, str(path)), record.checkpoint)


def _merged(study: Study, found: ImportanceRecord, path: Path) -> ImportanceRecord:
    """The model's layer record, merged with the study's ``found``. Raises :class:`PlainError`."""
    measured = found.measure(WORD_ERROR)
    wanted = len(study.utterances) * len(study.seeds)
    if measured is None:
        raise StudyError("No judge of word errors listened to the study; name one in its file, and run it again.")
    if measured.utterances < wanted:
        raise StudyError(
            f"Only {measured.utterances} of {wanted} utterances were spoken without every layer and heard; see what "
            "could not be made, and run the study again."
        )
    if path.is_file() and read_record([path.parent], found.checkpoint) is None:
        raise StudyError(f"{path} is of another checkpoint; move it away if it is not needed, and run the study again.")
    from paretone.models.files.trained_weights import places  # Imports torch.

    folder = Path(study.folder) if study.folder else catalogue.entry(study.model).folder
    earlier = read_record(places(study.model, folder), found.checkpoint) or found
    return replace(
        earlier.with_measure(measured),
        seconds=found.seconds,
        created=found.created,
        machine=found.machine,
        notes=tuple(dict.fromkeys((*earlier.notes, *found.notes))),
    )
