"""Merging the layer importance that a study has found with what else was measured of the model's layers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from paretone.errors import PlainError, StudyError
from paretone.models import catalogue
from paretone.models.files.language_weights import places
from paretone.models.files.layer_importance import FILE, WORD_ERROR, ImportanceRecord, read_record
from paretone.paths import own_place
from paretone.studies.store import Store
from paretone.studies.study import Study
from paretone.techniques.spade.studies.layers import importance


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
    folder = Path(study.folder) if study.folder else catalogue.entry(study.model).folder
    earlier = read_record(places(study.model, folder), found.checkpoint) or found
    return replace(
        earlier.with_measure(measured),
        seconds=found.seconds,
        created=found.created,
        machine=found.machine,
        notes=tuple(dict.fromkeys((*earlier.notes, *found.notes))),
    )
