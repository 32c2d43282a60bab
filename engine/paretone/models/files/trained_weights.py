"""Weights trained from a model's checkpoint, recognised by their files' metadata: CFG-free weights, weights for few
evaluations, and drafts and students of language models.

A file of weights for few evaluations has the model's official keys, and those of one more embedding
(:mod:`paretone.models.networks.diffusion`). Metadata: ``interval`` ("true"), ``method``, ``evaluations`` (the maximum
in training), ``sway`` (of their time grid), ``guidance`` (JSON, guidance options included in the weights), ``base``
(SHA-256 of the source checkpoint), ``steps`` and ``temperature`` (scale of the initial noise; default 1).
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

import torch
from safetensors.torch import save
from torch import Tensor

from paretone.errors import CheckpointError
from paretone.files import write_atomically
from paretone.models.base import (
    RECOVERED,
    DraftWeights,
    FeatureDraftWeights,
    IntervalWeights,
    ModelInfo,
    StudentWeights,
    WeightSet,
)
from paretone.models.files.checkpoints import fingerprint, loaded_strictly, metadata_of, read_float_weights
from paretone.models.files.layer_importance import read_record
from paretone.models.networks.diffusion import DiffusionTransformer, add_interval
from paretone.observer import Check
from paretone.paths import own_place
from paretone.reading import parsed_json
from paretone.setting.knobs import Values

WEIGHT_SETS = "cfg_free"
"""Folder of CFG-free weights, next to the model's checkpoint (bundled) or in the user's data folder."""


def trained_guidance(path: Path) -> float | None:
    """Guidance weight w of the training of the checkpoint ``path``, or ``None`` without trained guidance."""
    metadata = metadata_of(path)
    if metadata.get("cfg_free") != "true":
        return None
    try:
        weight = float(metadata["weight"])
    except (KeyError, ValueError):
        return None
    return weight if 0 < weight < 1 else None


def find_weight_sets(folders: Iterable[Path], base: str, check: Check = lambda: None) -> tuple[WeightSet, ...]:
    """CFG-free weights in ``folders`` made from the checkpoint with the fingerprint ``base``, ordered by weight, stages
    of trainings last. ``check`` may raise to cancel."""
    found = []
    for path, metadata in _made_from(base, folders):
        weight = trained_guidance(path)
        if weight is not None:
            steps, stage = metadata.get("steps", ""), metadata.get("stage") == "true"
            number = int(steps) if re.fullmatch(r"[0-9]{1,12}", steps) else 0
            method = metadata.get("method", "")
            found.append(WeightSet(str(path), fingerprint(path, check), weight, method, number, stage))
    return tuple(sorted(found, key=lambda one: (one.weight, one.stage)))


def weight_folders(kind: str, model: str, checkpoint: Path) -> tuple[Path, Path]:
    """Folders of weights trained from ``checkpoint``: :data:`WEIGHT_SETS` or :data:`INTERVALS`; the user's is last."""
    return checkpoint.parent / kind, own_place(model) / kind


def _made_from(base: str, folders: Iterable[Path]) -> Iterator[tuple[Path, dict[str, str]]]:
    """Files in ``folders`` made from the checkpoint with the fingerprint ``base``, with their metadata."""
    for path in (path for folder in folders for path in sorted(folder.glob("*.safetensors"))):
        metadata = metadata_of(path)
        if metadata.get("base") == base:
            yield path, metadata


INTERVALS = "intervals"
"""Folder of interval weights, next to the model's checkpoint (bundled) or in the user's data folder."""
PREFIX = "ema_model.transformer."
"""Prefix of keys in the official layout of F5-TTS."""
COUNTERS = ("initted", "step")
"""Keys of that layout that are not weights."""


def interval_metadata(weights: IntervalWeights, base: str, steps: int) -> dict[str, str]:
    """File metadata of ``weights``, without path and fingerprint."""
    return {
        "interval": "true",
        "method": weights.method,
        "evaluations": str(weights.evaluations),
        "sway": f"{weights.sway:.6g}",
        "guidance": json.dumps(dict(weights.guidance), sort_keys=True),
        "base": base,
        "steps": str(steps),
        "temperature": f"{weights.temperature:.6g}",
    }


def described_interval(found: Mapping[str, str], path: str, digest: str) -> IntervalWeights | None:
    """Parse the metadata ``found`` of a file with the fingerprint ``digest``; ``None`` if incomplete or another's."""
    if found.get("interval") != "true":
        return None
    try:
        evaluations, sway = int(found["evaluations"][:9]), float(found["sway"])
        temperature = float(found.get("temperature", 1))
        guidance = {str(name): float(value) for name, value in parsed_json(found["guidance"]).items()}
    except (KeyError, ValueError, TypeError, AttributeError):
        return None
    if evaluations < 1 or not all(map(math.isfinite, (sway, temperature, *guidance.values()))) or temperature <= 0:
        return None
    return IntervalWeights(path, digest, evaluations, sway, Values(guidance), found.get("method", ""), temperature)


def find_interval_weights(
    folders: Iterable[Path], base: str, check: Check = lambda: None
) -> tuple[IntervalWeights, ...]:
    """Interval weights in ``folders`` made from the checkpoint with the fingerprint ``base``. ``check`` may cancel."""
    found = ((path, described_interval(told, str(path), "")) for path, told in _made_from(base, folders))
    return tuple(replace(one, fingerprint=fingerprint(path, check)) for path, one in found if one is not None)


def with_flow_weights(info: ModelInfo, checkpoint: Path, base: str, check: Check) -> ModelInfo:
    """``info`` with the weights made from the flow in the file ``checkpoint``, whose fingerprint is ``base``."""
    return replace(
        info,
        weight_sets=find_weight_sets(weight_folders(WEIGHT_SETS, info.id, checkpoint), base, check),
        interval_weights=find_interval_weights(weight_folders(INTERVALS, info.id, checkpoint), base, check),
    )


def interval_backbone(own: DiffusionTransformer, weights: IntervalWeights) -> DiffusionTransformer:
    """Copy of the backbone ``own`` with interval weights, ready for inference. Raises :class:`CheckpointError`."""

    def make() -> DiffusionTransformer:
        made = type(own)(own.config)  # type: ignore[call-arg]
        add_interval(made)
        return made

    path = Path(weights.path)
    backbone = loaded_strictly(make, plain_names(read_float_weights(path)), str(path))
    backbone = backbone.to(own.final_norm.linear.weight.device)
    backbone.fuse()
    return backbone


def plain_names(content: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(PREFIX): value for name, value in content.items() if name not in COUNTERS}


def save_in_half(path: Path, weights: Mapping[str, Tensor], told: Mapping[str, str]) -> None:
    """Write ``weights`` with the metadata ``told`` atomically, in half precision. Rotary frequencies keep theirs,
    because positions multiply their error. Raises :class:`OSError`."""
    stored = {
        name: value.cpu().contiguous().to(value.dtype if name.endswith("inv_freq") else torch.float16)
        if value.is_floating_point()
        else value
        for name, value in weights.items()
    }
    write_atomically(path, save(stored, dict(told) or None))


DRAFTS, STUDENTS = "drafts", "students"
"""Folders next to the model (bundled) and in the user's own folder for it."""
FEATURE_DRAFT = "feature-draft"
"""Kind of a draft in its file's metadata: one that reads the target's hidden states."""


@dataclass(frozen=True)
class LanguageWeights:
    drafts: tuple[DraftWeights, ...] = ()
    """The first folder's first, then by file name."""
    feature_drafts: tuple[FeatureDraftWeights, ...] = ()
    students: tuple[StudentWeights, ...] = ()
    """In the same order, but recovered ones before intermediate stages."""
    foreign: tuple[str, ...] = ()
    layer_order: tuple[int, ...] = ()


def find_language_weights(folders: Sequence[Path], base: str, check: Check = lambda: None) -> LanguageWeights:
    """Drafts and students made from the checkpoint with the fingerprint ``base``, in ``folders``, the first
    one's first. ``check`` may raise to cancel. Raises :class:`CheckpointError` for a damaged layer measurement."""
    readers = {("draft", DRAFTS): _draft, (FEATURE_DRAFT, DRAFTS): _feature_draft, ("student", STUDENTS): _student}
    found: dict[str, list] = {name: [] for name, _ in readers}
    foreign = []
    for (name, kind), read in readers.items():
        for path in (path for folder in folders for path in sorted((folder / kind).glob("*.safetensors"))):
            metadata = metadata_of(path)
            if metadata.get("kind") != name:
                continue
            if metadata.get("base") == base:
                found[name].append(read(path, metadata, check))
            else:
                foreign.append(str(path))
    record = read_record(folders, base)
    order = () if record is None else record.order
    drafts, feature_drafts, students = (tuple(filter(None, those)) for those in found.values())
    students = tuple(sorted(students, key=lambda one: not one.recovered))
    return LanguageWeights(drafts, feature_drafts, students, tuple(foreign), order)


Described = TypeVar("Described", DraftWeights, FeatureDraftWeights)


def read_draft(path: Path, base: str, kind: type[Described], check: Check = lambda: None) -> Described:
    """Description of the draft of this ``kind`` in the file ``path``. Raises :class:`CheckpointError` unless it is one
    of the checkpoint with the fingerprint ``base``."""
    if not path.is_file():
        raise CheckpointError(f"{path} is missing; give the file of a draft.")
    metadata = metadata_of(path)
    described = {"draft": _draft, FEATURE_DRAFT: _feature_draft}.get(metadata.get("kind", ""))
    draft = described(path, metadata, check) if described else None
    if not isinstance(draft, kind):
        raise CheckpointError(f"{path} is not a draft; give the file that a training of one has written.")
    if metadata.get("base") != base:
        raise CheckpointError(f"The draft {path} was made from another checkpoint; train without it, or from that one.")
    return draft


def places(model: str, folder: Path) -> tuple[Path, ...]:
    """Folders of drafts, students and layer measurements of the checkpoint in ``folder``; the user's own is last."""
    own = own_place(model)
    return (own,) if own == folder else (folder, own)


def places_of(info: ModelInfo) -> tuple[Path, ...]:
    checkpoint = Path(info.checkpoint)
    return places(info.id, checkpoint if checkpoint.is_dir() else checkpoint.parent)


def _draft(path: Path, metadata: Mapping[str, str], check: Check) -> DraftWeights | None:
    retained, trained = (_layers(metadata.get(name, "")) for name in ("retained", "trained"))
    if not retained or trained is None:
        return None
    return DraftWeights(str(path), fingerprint(path, check), retained, trained, metadata.get("head") == "true")


def _feature_draft(path: Path, metadata: Mapping[str, str], check: Check) -> FeatureDraftWeights | None:
    reads = _layers(metadata.get("reads", ""))
    return None if reads is None else FeatureDraftWeights(str(path), fingerprint(path, check), reads)


def _student(path: Path, metadata: Mapping[str, str], check: Check) -> StudentWeights | None:
    retained = _layers(metadata.get("retained", ""))
    if not retained:
        return None
    try:
        minutes = float(metadata.get("minutes", "0"))
    except ValueError:
        minutes = 0.0
    stage, targets = metadata.get("stage", RECOVERED), metadata.get("targets", "following")
    return StudentWeights(str(path), fingerprint(path, check), retained, stage, minutes, targets)


def _layers(text: str) -> tuple[int, ...] | None:
    """Ascending layer numbers from JSON, or ``None`` for anything else."""
    try:
        layers = parsed_json(text)
    except ValueError:
        return None
    if not isinstance(layers, list) or not all(isinstance(one, int) and one >= 0 for one in layers):
        return None
    return tuple(layers) if layers == sorted(set(layers)) else None
