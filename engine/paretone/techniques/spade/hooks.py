"""What studies and exports ask of SPADE: see :mod:`paretone.studies.hooks` and :mod:`paretone.export.targets`.
Torch-free."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from paretone.errors import PlainError, StudyError
from paretone.export.accounts import FEWER_LAYERS, Carried, whole_line
from paretone.export.targets import Target, lacking
from paretone.fields import Fields
from paretone.models import catalogue
from paretone.models.files.layer_importance import FILE, WORD_ERROR, ImportanceRecord, read_record
from paretone.paths import own_place
from paretone.setting.knobs import Values, checked
from paretone.setting.setting import Setting, UsedTechnique
from paretone.studies.hooks import Finding
from paretone.studies.store import Store
from paretone.studies.study import Study
from paretone.techniques.spade import NAME, NONE, TECHNIQUE, LayersMeasured
from paretone.techniques.spade.importance import importance

LEAVE_OUT = "leave_one_layer_out"
"""The field of a study's file that asks for one setting for each layer, without it."""
LAYERS = "layers"
"""The field with the number of these layers."""


def settings(fields: Fields, model: str, options: Values) -> Iterator[tuple[Setting, str]]:
    """One setting for each layer of a language model, without it: what importance by words is measured on."""
    if not fields.flag(LEAVE_OUT):
        return
    layers = fields.whole(LAYERS, 0, minimum=2)
    for layer in range(layers):
        kept = ",".join(str(one) for one in range(layers) if one != layer)
        knobs = checked(TECHNIQUE.knobs, {"recovery": NONE, "layers": kept}, TECHNIQUE.title)
        yield Setting(model, options, (UsedTechnique(NAME, knobs),)), f"without layer {layer}"


def files(store: Store) -> dict[str, str]:
    """The importance of layers, as SPADE reads it."""
    found = importance(store)
    return {} if found is None else {FILE: found.to_json()}


def finished(study: Study, store: Store) -> Finding | None:
    """Put the importance that was found into the model's own record."""
    adopted = adopt(study, store)
    if adopted is None:
        return None
    if adopted.record is None:
        return Finding(adopted.sentence, (("layers", ""),))
    path = str(adopted.path)
    result = LayersMeasured(adopted.record, path)
    return Finding(adopted.sentence, (("layers", path),), result, adopted.record.checkpoint)


KIND = "student"


def carried(target: Target, entry: UsedTechnique, artefact: object) -> Carried:
    """The student goes in place of the model, where the target runs language models."""
    if FEWER_LAYERS not in target.takes:
        return lacking(target, entry)
    return Carried((whole_line(entry, "the model that is written has these layers"),))


@dataclass(frozen=True)
class Adoption:
    """Result of merging a finished study's word error rates."""

    sentence: str
    """To be said to the user."""
    path: Path
    """The model's own record of its layers."""
    record: ImportanceRecord | None = None
    """The merged record; ``None`` if nothing was merged."""


def adopt(study: Study, store: Store) -> Adoption | None:
    """Merge the word error rate without each layer into the user's own ``layers.json`` of the model, in the place of
    an earlier one; other measures stay as they are. ``None`` for a study of other things.

    Nothing is adopted where takes are missing, where the record there is of another checkpoint, or where it cannot be
    read or written; the sentence says which. The study itself is none the worse for it.
    """
    path = own_place(study.model) / FILE
    try:
        found = importance(store, study)
        if found is None:
            return None
        record = _merged(study, found, path)
        record.write(path)
    except PlainError as error:
        return Adoption(f"The word error rates without each layer were not merged. {error}", path)
    kept = ", ".join(str(layer) for layer in record.order)
    sentence = (
        f"Merged the word error rates without each layer into {path}, which SPADE and the panel Layers "
        f"read. Layers, most important first: {kept}."
    )
    return Adoption(sentence, path, record)


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
