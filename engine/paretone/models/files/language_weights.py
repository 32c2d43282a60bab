"""Drafts and students of language models, recognised by the metadata of their files; and which layers matter."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from paretone.errors import CheckpointError
from paretone.models.base import RECOVERED, DraftWeights, ModelInfo, StudentWeights
from paretone.models.files.checkpoints import fingerprint, metadata_of
from paretone.models.files.layer_importance import read_record
from paretone.paths import own_place
from paretone.reading import parsed_json

DRAFTS, STUDENTS = "drafts", "students"
"""Folders of them, next to the model (bundled) and in the user's own place for it."""


@dataclass(frozen=True)
class LanguageWeights:
    """Drafts and students found for a checkpoint."""

    drafts: tuple[DraftWeights, ...] = ()
    """The one that was named first comes first."""
    students: tuple[StudentWeights, ...] = ()
    """Likewise, those that are recovered before the stages on the way there."""
    foreign: tuple[str, ...] = ()
    """Files that were made from another checkpoint."""
    layer_order: tuple[int, ...] = ()
    """Layers from the most to the least important, if that was measured."""

    def on(self, info: ModelInfo) -> ModelInfo:
        """``info`` with what was found."""
        return replace(
            info,
            drafts=self.drafts,
            students=self.students,
            foreign=self.foreign,
            layer_order=self.layer_order,
        )


def find_language_weights(
    folders: Sequence[Path], base: str, check: Callable[[], None] = lambda: None
) -> LanguageWeights:
    """Drafts and students in ``drafts`` and ``students`` of ``folders``, the last of these first, that were made from
    the checkpoint with the fingerprint ``base``. ``check`` may raise to cancel. Raises
    :class:`CheckpointError` if the measurement of layers is damaged."""
    found: dict[str, list] = {DRAFTS: [], STUDENTS: []}
    foreign = []
    for kind, (name, read) in {DRAFTS: ("draft", _draft), STUDENTS: ("student", _student)}.items():
        for path in (path for folder in reversed(folders) for path in sorted((folder / kind).glob("*.safetensors"))):
            metadata = metadata_of(path)
            if metadata.get("kind") != name:
                continue
            if metadata.get("base") == base:
                found[kind].append(read(path, metadata, check))
            else:
                foreign.append(str(path))
    record = read_record(folders, base)
    order = () if record is None else record.order
    drafts, students = (tuple(filter(None, found[kind])) for kind in (DRAFTS, STUDENTS))
    students = tuple(sorted(students, key=lambda one: not one.recovered))
    return LanguageWeights(drafts, students, tuple(foreign), order)


def read_draft(path: Path, base: str, check: Callable[[], None] = lambda: None) -> DraftWeights:
    """Description of the draft in the file ``path``. Raises :class:`CheckpointError` if it is not a draft made from the
    checkpoint with the fingerprint ``base``."""
    if not path.is_file():
        raise CheckpointError(f"{path} is missing; give the file of a draft.")
    metadata = metadata_of(path)
    draft = _draft(path, metadata, check) if metadata.get("kind") == "draft" else None
    if draft is None:
        raise CheckpointError(f"{path} is not a draft; give the file that a training of one has written.")
    if metadata.get("base") != base:
        raise CheckpointError(f"The draft {path} was made from another checkpoint; train without it, or from that one.")
    return draft


def places(model: str, folder: Path) -> tuple[Path, ...]:
    """Folders of drafts, students and layer measurements of the model whose checkpoint is in ``folder``; the user's own
    last."""
    own = own_place(model)
    return (own,) if own == folder else (folder, own)


def places_of(info: ModelInfo) -> tuple[Path, ...]:
    """As :func:`places`, of the loaded model that ``info`` describes."""
    checkpoint = Path(info.checkpoint)
    return places(info.id, checkpoint if checkpoint.is_dir() else checkpoint.parent)


def _draft(path: Path, metadata: Mapping[str, str], check: Callable[[], None]) -> DraftWeights | None:
    retained, trained = (_layers(metadata.get(name, "")) for name in ("retained", "trained"))
    if not retained or trained is None:
        return None
    return DraftWeights(str(path), fingerprint(path, check), retained, trained, metadata.get("head") == "true")


def _student(path: Path, metadata: Mapping[str, str], check: Callable[[], None]) -> StudentWeights | None:
    retained = _layers(metadata.get("retained", ""))
    if not retained:
        return None
    try:
        minutes = float(metadata.get("minutes", "0"))
    except ValueError:
        minutes = 0.0
    return StudentWeights(str(path), fingerprint(path, check), retained, metadata.get("stage", RECOVERED), minutes)


def _layers(text: str) -> tuple[int, ...] | None:
    """Ascending layer numbers from JSON, or ``None`` if it is something else."""
    try:
        layers = parsed_json(text)
    except ValueError:
        return None
    if not isinstance(layers, list) or not all(isinstance(one, int) and one >= 0 for one in layers):
        return None
    return tuple(layers) if layers == sorted(set(layers)) else None
