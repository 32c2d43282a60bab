"""A language model with fewer layers as files for other software: a Hugging Face checkpoint, or CosyVoice's ``llm.pt``.

Students are written as they are, drafts with the frozen layers that their file omits. Layers are numbered from 0
without gaps; ``provenance.json`` and the configuration list the original numbers.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from types import ModuleType
from typing import Protocol

import torch
from safetensors.torch import save
from torch import Tensor

from paretone import __version__
from paretone.errors import CheckpointError, SettingError
from paretone.export.delivery import deliver
from paretone.export.targets import json_file
from paretone.models.base import LANGUAGE, DraftWeights, StudentWeights
from paretone.models.catalogue import entry
from paretone.models.cosyvoice2.checkpoint import CONFIG as COSY_CONFIG
from paretone.models.cosyvoice2.checkpoint import COSYVOICE2, COUNTERS, Edition, OfficialFolder
from paretone.models.cosyvoice2.language_model import with_text_head
from paretone.models.cosyvoice2.model import LANGUAGE_MODEL
from paretone.models.cosyvoice3.checkpoint import COSYVOICE3
from paretone.models.declaration import Model
from paretone.models.files.bundled import SUFFIX
from paretone.models.files.checkpoints import Shards, fingerprint, plain_file, read_weights
from paretone.models.files.config_file import ConfigFile
from paretone.models.files.layer_importance import pruned, require_layers
from paretone.models.files.trained_weights import find_language_weights, places
from paretone.models.minis.lm_mini import TOKENIZER
from paretone.models.minis.speaking import LAYOUT_FILE
from paretone.models.qwen3_tts.checkpoint import TalkerNames
from paretone.observer import Check, Observer
from paretone.reading import read_bytes, readable
from paretone.setting.knobs import NO_VALUES, Values
from paretone.setting.plan import imported
from paretone.setting.setting import UsedTechnique
from paretone.techniques import Technique, knobs_of
from paretone.techniques.base import AnyWeights
from paretone.techniques.registry import brought
from paretone.techniques.resolving import known

STUDENT, DRAFT = KINDS = ("student", "draft")
PROVENANCE, RETAINED = "provenance.json", "retained_layers"
WEIGHTS, CONFIG, HEAD, TALKER = "model.safetensors", "config.json", "lm_head.weight", "talker_config"
LM_MINI_FILES = (LAYOUT_FILE, f"{TOKENIZER}/config.json", f"{TOKENIZER}/model.safetensors")
TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "generation_config.json")
"""Files exported with the weights, if they exist."""


@dataclass(frozen=True)
class LanguageExport:
    model: str
    kind: str
    """One of :data:`KINDS`."""
    folder: Path
    file: str = ""
    """Path of the student or draft; default: the first of the model."""
    settings: Values = NO_VALUES
    model_folder: str = ""
    """Folder of the checkpoint, if not the usual one."""


class Source(Protocol):
    """A model's checkpoint, from which models with fewer layers are made."""

    @property
    def root(self) -> Path: ...

    @property
    def checks(self) -> Callable[[], None]:
        """Called while reading files; may raise to cancel."""

    def base(self) -> str:
        """Fingerprint of the checkpoint."""

    @property
    def config(self) -> ConfigFile:
        """Sizes of the language model, as Hugging Face names them."""

    def weights(self) -> dict[str, Tensor]:
        """Tensors by official name."""

    def files(self, tensors: Mapping[str, Tensor], retained: Sequence[int]) -> dict[str, bytes]:
        """Files of a checkpoint with these tensors, of the layers ``retained``."""


@dataclass(frozen=True)
class HuggingFaceSource:
    """A folder for ``AutoModelForCausalLM.from_pretrained``. Reading raises :class:`CheckpointError`."""

    root: Path
    checks: Check = lambda: None
    companions: tuple[str, ...] = TOKENIZER_FILES

    def base(self) -> str:
        return Shards.find(self.root).fingerprint(self.checks)

    @cached_property
    def whole_config(self) -> ConfigFile:
        return ConfigFile.read(self.root / CONFIG)

    @property
    def config(self) -> ConfigFile:
        return self.whole_config

    def weights(self) -> dict[str, Tensor]:
        return Shards.find(self.root).read(check=self.checks)[0]

    def files(self, tensors: Mapping[str, Tensor], retained: Sequence[int]) -> dict[str, bytes]:
        """As in :class:`Source`, including the companions."""
        config = shallower(self.config.entries, retained)
        if HEAD in tensors:  # A trained head is no longer tied to the embedding.
            config["tie_word_embeddings"] = False
        contents = {WEIGHTS: save({name: value.contiguous() for name, value in tensors.items()}, {"format": "pt"})}
        contents[CONFIG] = json_file(config)
        return contents | self.companion_files()

    def companion_files(self) -> dict[str, bytes]:
        return {
            name: plain_file(path) if path.suffix == SUFFIX else _read(path)
            for name in self.companions
            if (path := self.root / name).is_file()
        }


@dataclass(frozen=True)
class CosySource:
    """A release of CosyVoice 2 or 3, of which an export replaces two files."""

    root: Path
    checks: Check = lambda: None
    edition: Edition = COSYVOICE2

    @property
    def parts(self) -> OfficialFolder:
        return OfficialFolder(self.root, check=self.checks, edition=self.edition)

    def base(self) -> str:
        return fingerprint(self.parts.place(LANGUAGE_MODEL), self.checks)

    @cached_property
    def config(self) -> ConfigFile:
        return ConfigFile.read(self.parts.place(COSY_CONFIG))

    def weights(self) -> dict[str, Tensor]:
        return read_weights(self.parts.place(LANGUAGE_MODEL), self.checks, COUNTERS)

    def files(self, tensors: Mapping[str, Tensor], retained: Sequence[int]) -> dict[str, bytes]:
        """As in :class:`Source`: with both files replaced, the official class loads ``llm.pt`` strictly."""
        buffer = io.BytesIO()
        # Views are written with their whole storage, so copy.
        torch.save({name: value.clone() for name, value in with_text_head(tensors).items()}, buffer)
        return {LANGUAGE_MODEL: buffer.getvalue(), COSY_CONFIG: json_file(shallower(self.config.entries, retained))}


@dataclass(frozen=True)
class TalkerSource(HuggingFaceSource):
    """A release of Qwen3-TTS, of which an export replaces two files."""

    @property
    def config(self) -> ConfigFile:
        return self.whole_config.part(TALKER, needed=True)

    def files(self, tensors: Mapping[str, Tensor], retained: Sequence[int]) -> dict[str, bytes]:
        """As in :class:`Source`: all parts, with these layers of the talker."""
        others = {name: value for name, value in self.weights().items() if not name.startswith(TalkerNames.layers)}
        config = {**self.whole_config.entries, TALKER: shallower(self.config.entries, retained)}
        return {WEIGHTS: save({**others, **tensors}, {"format": "pt"}), CONFIG: json_file(config)}


cosyvoice3_source = partial(CosySource, edition=COSYVOICE3)
lm_mini_source = partial(HuggingFaceSource, companions=LM_MINI_FILES)


def export_language(job: LanguageExport, follower: Observer) -> tuple[str, tuple[Path, ...]]:
    """Write a student or a draft, all files or none; return the file of its weights, and those written. Raises
    :class:`SettingError` if there is none, :class:`PlainError` if it cannot be read or written."""
    chosen = entry(job.model)
    if reason := _owner(job.kind)[0].not_offered(known(chosen.id)):
        raise SettingError(f"A {job.kind} cannot be exported: {reason}")
    source = source_of(chosen, job.model_folder, follower.check)
    follower.status("Reading the checkpoint")
    base = source.base()
    found = find_language_weights(places(chosen.id, source.root), base, follower.check)
    wanted: StudentWeights | DraftWeights
    if job.kind == STUDENT:
        contents = student_contents(source, base, wanted := _wanted(found.students, job, chosen))
    else:
        contents = draft_contents(source, base, wanted := _wanted(found.drafts, job, chosen), job.settings)
    follower.status(f"Writing to {job.folder}")
    return wanted.path, deliver(job.folder, contents, follower.progress)


def _wanted(there: Sequence[AnyWeights], job: LanguageExport, chosen: Model) -> AnyWeights:
    """The weights to write, from ``there``. Raises :class:`SettingError` if they are missing."""
    for one in there:
        if not job.file or Path(one.path).resolve() == Path(job.file).resolve():
            return one
    which = f"{job.file} is not one of its {job.kind}s" if job.file else f"it has no {job.kind}"
    raise SettingError(f"{chosen.title} cannot be exported: {which}; train one (paretone train).")


def source_of(chosen: Model, folder: str = "", check: Check = lambda: None) -> Source:
    """Checkpoint of a model, in ``folder`` if given. Raises :class:`SettingError` for a model without students and
    drafts, and :class:`CheckpointError`."""
    place = Path(folder) if folder else chosen.folder
    if chosen.exports is None:
        why = "declares no exports" if chosen.family == LANGUAGE else "decodes no tokens"
        raise SettingError(f"{chosen.title} {why}, so none of its students or drafts can be exported.")
    if not place.is_dir():
        raise CheckpointError(f"{chosen.title} is not in {place}; name the folder that holds its checkpoint.")
    opened: Source = imported(chosen.exports.source)(place, check)
    return opened


def student_contents(source: Source, base: str, student: StudentWeights) -> dict[str, bytes]:
    """Files of a student; ``base`` is the fingerprint of ``source``. Raises :class:`CheckpointError`."""
    about = {"stage": student.stage, "minutes": student.minutes}
    return _checkpoint(source, base, student, _owner(STUDENT)[0], about)


def draft_contents(source: Source, base: str, draft: DraftWeights, given: Values = NO_VALUES) -> dict[str, bytes]:
    """Files of a draft, including its untrained layers, and its settings with the ``given`` knobs. Raises
    :class:`CheckpointError`, and :class:`SettingError` for settings out of range."""
    owner, module = _owner(DRAFT)
    settings = {name: value for name, value in knobs_of(UsedTechnique(owner.name, given)).items() if name != "draft"}
    settings |= {"target": base, "options": "final distributions are compared: sampler and history of the target"}
    contents = _checkpoint(source, base, draft, owner, {"trained_layers": list(draft.trained)})
    return {**contents, module.SETTINGS_FILE: json_file(settings)}


def tensors_of(source: Source, weights: StudentWeights | DraftWeights) -> dict[str, Tensor]:
    """Tensors of a student or draft of ``source`` by official name, including a draft's untrained layers. Raises
    :class:`CheckpointError`, and :class:`SettingError` for layers that the model does not have."""
    if isinstance(weights, StudentWeights):
        return read_weights(Path(weights.path), source.checks)
    require_layers(weights.retained, source.config.number("num_hidden_layers"))
    return pruned(source.weights() | read_weights(Path(weights.path), source.checks), weights.retained)


def _owner(kind: str) -> tuple[Technique, ModuleType]:
    return next((one, module) for one, module in brought("exports") if getattr(module, "KIND", "") == kind)


def _checkpoint(
    source: Source, base: str, weights: StudentWeights | DraftWeights, owner: Technique, about: Mapping[str, object]
) -> dict[str, bytes]:
    tensors = tensors_of(source, weights)
    provenance = {
        "made_by": f"Paretone {__version__}",
        "base": base,
        "base_layers": source.config.number("num_hidden_layers"),
        RETAINED: list(weights.retained),
        "technique": owner.title,
        "paper": owner.paper.reference,
        **about,
        "file": weights.fingerprint,
    }
    return {**source.files(tensors, weights.retained), PROVENANCE: json_file(provenance)}


def _read(path: Path) -> bytes:
    with readable(CheckpointError, f"{path} cannot be read", "restore the model folder"):
        return read_bytes(path)


def shallower(config: Mapping, retained: Sequence[int]) -> dict[str, object]:
    """``config`` for the ``retained`` layers; lists by layer are shortened accordingly."""
    fewer = {**config, "num_hidden_layers": len(retained), RETAINED: list(retained)}
    if "layer_types" in config:
        fewer["layer_types"] = [config["layer_types"][layer] for layer in retained]
    if "max_window_layers" in config:
        fewer["max_window_layers"] = min(config["max_window_layers"], len(retained))
    return fewer
