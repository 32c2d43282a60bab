"""Official F5-TTS and E2-TTS checkpoints: layout and architecture.

v0 and v1 of a size have equal tensors, and the wrong one loads without an error and speaks noise. The architecture
therefore comes from the caller, from a ``model.yaml`` next to the weights, or from the released folder name; otherwise
:class:`VariantUnknown` asks. It is never guessed from the weights, only checked against them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from torch import Tensor

from paretone.audio.mel import BIGVGAN, STYLES, VOCOS
from paretone.errors import CheckpointError
from paretone.models.f5.config import CHARACTERS, MEL_BANDS, NATURAL_PHONES, SIDECAR, VARIANTS, BackboneConfig
from paretone.models.f5.dit import DiT
from paretone.models.f5.unett import UNetT
from paretone.models.files.checkpoints import (
    check_shapes,
    loaded_strictly,
    read_checkpoint,
    shapes_of,
    sound_tensors,
    unwrapped,
)
from paretone.models.files.config_file import PICKLED, SAFETENSORS, WEIGHTS, ConfigFile
from paretone.models.files.trained_weights import COUNTERS
from paretone.models.networks.shapes import without_weights
from paretone.observer import Check
from paretone.reading import named_first, shortened, shown
from paretone.wording import listed

TOKENIZERS = "pinyin", "char", "byte", "custom"
RELEASED_FOLDERS: Mapping[str, tuple[str, str]] = {
    **{name: (name, VOCOS) for name in VARIANTS},
    "F5TTS_v1_Base_no_zero_init": ("F5TTS_v1_Base", VOCOS),
    "F5TTS_Base_bigvgan": ("F5TTS_Base", BIGVGAN),
}
"""Architecture and mel front end by released folder name."""

_BACKBONES: dict[str, type[DiT] | type[UNetT]] = {"DiT": DiT, "UNetT": UNetT}
_WEIGHTS_PREFIX = "transformer."
_EMA_PREFIX = "ema_model."
_ONLINE_PREFIX = "online_model."
_BEFORE = "ema_model", "online_model", "model"
_LAST, _STARTED_FROM = "model_last", "pretrained_"
"""File names in the official training for the last checkpoint, and for the initial one."""
_LEGACY_KEYS = ("mel_spec.mel_stft.mel_scale.fb", "mel_spec.mel_stft.spectrogram.window")


class VariantUnknown(CheckpointError):
    """The architecture of a checkpoint is unknown. ``candidates`` are those that fit its weights."""

    def __init__(self, path: Path, candidates: tuple[str, ...]) -> None:
        self.path = path
        self.candidates = candidates
        super().__init__(
            f"The architecture of {path} is not given, and its weights fit {listed(candidates)} alike; "
            f"choose one, or name the folder after it."
        )

    def __reduce__(self) -> tuple:
        return VariantUnknown, (self.path, self.candidates)


class SeveralCheckpoints(CheckpointError):
    """A folder contains several weight files; ``files`` are these, the newest first."""

    def __init__(self, place: Path, found: tuple[Path, ...]) -> None:
        self.place, self.found = place, found
        self.files = tuple(map(str, found))
        names = named_first([path.name for path in found], 5)
        super().__init__(f"{place} holds several checkpoints ({names}); choose one of these files.")

    def __reduce__(self) -> tuple:
        return SeveralCheckpoints, (self.place, self.found)


@dataclass(frozen=True)
class F5Checkpoint:
    """A checkpoint that has been read and fits its architecture."""

    path: Path
    variant: str
    """One of :data:`VARIANTS`, or the name in a sidecar."""
    config: BackboneConfig
    weights: Mapping[str, Tensor] = field(repr=False)
    """On the CPU, by official names without ``transformer.``."""
    mel_style: str = VOCOS
    tokenizer: str = "pinyin"
    """``pinyin``, ``char``, ``byte`` or ``custom``, as in official configuration files."""
    text_front_end: str = CHARACTERS
    """``characters``, or ``natural phones`` with one token per frame (bundled models)."""

    def with_weights(self, path: Path) -> F5Checkpoint:
        """The same model with the weights in ``path``. Raises :class:`CheckpointError` if they do not fit."""
        return replace(self, path=path, weights=backbone_weights(read_checkpoint(path), str(path)))

    def build(self) -> DiT | UNetT:
        """Backbone with these weights, float32, on the CPU, in evaluation mode."""
        make = _BACKBONES[self.config.backbone]
        return loaded_strictly(lambda: make(self.config), self.weights, str(self.path))


def find_checkpoint(place: Path) -> Path:
    """Weight file at ``place``: the file itself, or the only one (``.safetensors`` first) in a folder. The initial
    checkpoint of a training counts only if there is no other.

    Raises :class:`CheckpointError` without any, and :class:`SeveralCheckpoints` if the choice is ambiguous.
    """
    if not place.is_dir():
        return place
    there = [path for path in place.glob("*") if path.suffix in WEIGHTS]
    trained = [path for path in there if not path.name.startswith(_STARTED_FROM)]
    for suffixes in ((SAFETENSORS,), PICKLED):
        found = sorted((path for path in trained or there if path.suffix in suffixes), key=_age)
        if len(found) > 1:
            raise SeveralCheckpoints(place, tuple(found))
        if found:
            return found[0]
    raise CheckpointError(f"{place} holds no checkpoint; expected a {listed(WEIGHTS, 'or')} file in it.")


def _age(path: Path) -> tuple:
    """Sort key for the newest checkpoint of a training first: the last one, then by the number of updates in its name,
    then by time, which copies and downloads change."""
    number = re.findall(r"\d+", path.stem)
    return path.stem != _LAST, -int(number[-1][:18]) if number else 0, -path.stat().st_mtime, path.name


def read_f5_checkpoint(place: Path, variant: str = "", check: Check = lambda: None) -> F5Checkpoint:
    """Read a checkpoint file or folder.

    ``variant`` names one of :data:`VARIANTS` and overrides the folder's description. ``check`` may raise to cancel.

    Raises :class:`CheckpointError` that names missing, unexpected or differently shaped weights, and
    :class:`VariantUnknown` if the architecture is unknown.
    """
    path = find_checkpoint(place)
    weights = backbone_weights(read_checkpoint(path, check), str(path))
    shapes = shapes_of(weights)
    # Community fine-tunes have their own vocabulary, with one entry less than the embedding has rows.
    shape = shapes.get("text_embed.text_embed.weight", ())
    if len(shape) != 2 or shape[0] < 2:
        raise CheckpointError(f"{path} lacks the weight transformer.text_embed.text_embed.weight; download it again.")
    entries = shape[0] - 1
    found = _described(path, variant, entries, weights)
    if found is None:
        known = {name: replace(config, text_num_embeds=entries) for name, config in VARIANTS.items()}
        candidates = tuple(name for name, config in known.items() if expected_shapes(config) == shapes)
        if not candidates:
            raise CheckpointError(
                f"The weights of {path} fit none of {', '.join(VARIANTS)}; "
                f"put a {SIDECAR} that describes the architecture next to it."
            )
        if len(candidates) > 1:
            raise VariantUnknown(path, candidates)
        found = F5Checkpoint(path, candidates[0], known[candidates[0]], weights)
    check_shapes(expected_shapes(found.config, shapes, str(path)), shapes, f"{path} as {found.variant}")
    return found


def backbone_weights(content: Mapping[str, object], where: str) -> dict[str, Tensor]:
    """Backbone weights in an official checkpoint's content, by names without prefixes.

    Prefers the moving average; its counters and the keys of an old mel front end are ignored. Raises
    :class:`CheckpointError` for anything else that is not the backbone's.
    """
    content = unwrapped(content, where)
    if any(str(key).startswith(_EMA_PREFIX) for key in content):
        content = {key: value for key, value in content.items() if not str(key).startswith(_ONLINE_PREFIX)}
    stripped = {str(key): value for key, value in unwrapped(content, where, _BEFORE).items()}
    kept = {key: value for key, value in stripped.items() if key not in (*COUNTERS, *_LEGACY_KEYS)}
    weights = {
        key.removeprefix(_WEIGHTS_PREFIX): value
        for key, value in kept.items()
        if key.startswith(_WEIGHTS_PREFIX) and isinstance(value, Tensor)
    }
    strange = [key for key in kept if key.removeprefix(_WEIGHTS_PREFIX) not in weights]
    if strange or not kept:
        example = f", but for example {shown(strange[0])}" if strange else ""
        raise CheckpointError(
            f"{where} is not an F5-TTS or E2-TTS checkpoint: "
            f"it should hold weights named '{_WEIGHTS_PREFIX}…' only{example}. Choose the model of these weights."
        )
    return sound_tensors(weights, where)


def expected_shapes(
    config: BackboneConfig, found: Mapping[str, tuple[int, ...]] | None = None, where: str = ""
) -> dict[str, tuple[int, ...]]:
    """Shapes of an architecture's weights by name, without allocating them; limited by ``found`` in ``where``, see
    :func:`paretone.models.networks.shapes.without_weights`."""
    with without_weights(found, where):
        backbone = _BACKBONES[config.backbone](config)
    return shapes_of(backbone.state_dict())


def _described(path: Path, variant: str, entries: int, weights: Mapping[str, Tensor]) -> F5Checkpoint | None:
    """The ``weights`` as the caller, a sidecar or the folder's name describes them; ``None`` if none does."""

    def released(name: str, mel_style: str) -> F5Checkpoint:
        return F5Checkpoint(path, name, replace(VARIANTS[name], text_num_embeds=entries), weights, mel_style)

    if variant:
        if variant not in VARIANTS:
            raise CheckpointError(f"There is no architecture {shown(variant)}; known: {', '.join(VARIANTS)}.")
        return released(variant, RELEASED_FOLDERS.get(path.resolve().parent.name, (variant, VOCOS))[1])
    sidecar = path.parent / SIDECAR
    if sidecar.is_file():
        return _from_sidecar(sidecar, path, entries, weights)
    for folder in (path.absolute().parent, path.resolve().parent):
        if folder.name in RELEASED_FOLDERS:
            return released(*RELEASED_FOLDERS[folder.name])
    return None


def _from_sidecar(sidecar: Path, path: Path, entries: int, weights: Mapping[str, Tensor]) -> F5Checkpoint:
    """Parse the part ``model`` of an official configuration file."""
    model = ConfigFile.read(sidecar).part("model", needed=True)
    arch, mel = model.part("arch", needed=True), model.part("mel_spec")
    mel_style = mel.one_of("mel_spec_type", STYLES, VOCOS)
    bands = arch.number("mel_dim", mel.number("n_mel_channels", MEL_BANDS))
    sizes = {**arch.entries, "mel_dim": bands, "text_dim": arch.number("text_dim", bands)}
    front_end = model.text("text_frontend", CHARACTERS)
    if front_end not in (CHARACTERS, NATURAL_PHONES):
        raise CheckpointError(
            f"{sidecar}: Paretone has no text front end {shown(front_end)} (any more); models of earlier versions that "
            "read such phones have to be trained again, or opened with that version."
        )
    return F5Checkpoint(
        path,
        shortened(model.text("name", sidecar.parent.name), 80),
        BackboneConfig.from_official(model.text("backbone"), ConfigFile(sizes, arch.where), entries),
        weights,
        mel_style,
        model.one_of("tokenizer", TOKENIZERS, TOKENIZERS[0]),
        front_end,
    )
