"""From a catalogue entry, a folder and a device to a loaded model with its vocoder."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import torch
from torch import Tensor

from paretone import device as devices
from paretone.errors import CheckpointError
from paretone.models.base import FLOW, LANGUAGE, MASKED, ModelInfo, SpeechModel, TrainedWeights
from paretone.models.catalogue import entry, id_of, plug_in, within
from paretone.models.declaration import Model
from paretone.models.files.bundled import require_shipped, verified_meanwhile
from paretone.models.files.checkpoints import fingerprint, require_part
from paretone.models.files.config_file import is_lora, lora_error, weight_files
from paretone.models.kernels import attention, few_rows, fused_masked
from paretone.models.minis.natural_vocoder import LatentVocoder
from paretone.models.networks.vocos import Vocos
from paretone.observer import Check, Status
from paretone.own_process import keep_freed_memory
from paretone.paths import resource
from paretone.reading import is_regular, named_first
from paretone.sampling import tokens
from paretone.setting.plan import Part, imported

if TYPE_CHECKING:
    from paretone.models.families.flow import FlowSpeech
    from paretone.models.families.language import LanguageSpeech
    from paretone.models.families.masked import MaskedSpeech


class Vocoder(Protocol):
    def decode(self, mel: Tensor) -> Tensor:
        """Natural-log mel (B, bands, frames) to audio (B, (frames - 1) · 256), float32 at 24 kHz."""


def load_vocoder(folder: Path, device: torch.device | str = "cpu", check: Check = lambda: None) -> Vocoder:
    """Load the vocoder in ``folder``, of natural speech or official. ``check`` is called between parts and may raise to
    cancel. Raises :class:`CheckpointError` that names the faulty file."""
    if not folder.exists():
        raise CheckpointError(f"There is no vocoder in {folder}; download the model, or choose the folder of one.")
    if LatentVocoder.is_at(folder):
        check()
        return LatentVocoder.load(folder, device)
    if (folder / "bigvgan_generator.pt").is_file():
        raise CheckpointError(
            f"{folder} holds a BigVGAN, which Paretone does not have; give the folder of vocos-mel-24khz, and a "
            "checkpoint that was trained for it."
        )
    return Vocos.load(folder, device, check)


@dataclass(frozen=True)
class LoadRequest:
    entry: Model
    place: Path
    """Existing folder of the checkpoint, or its file."""
    variant: str
    """Architecture chosen by the caller, or ``""``."""
    device: torch.device
    status: Status
    check: Check
    """Called between parts; may raise to cancel."""
    own_vocoder: str = ""
    """Folder of the vocoder, if not the default one."""

    def require_folder(self, parts: str) -> None:
        """Raise :class:`CheckpointError` if :attr:`place` is a file: it names its folder if that is the model's, else
        the ``parts`` that such a folder holds."""
        if not self.place.is_dir():
            folder = max(self.place.absolute().parents[:2], key=self.entry.recognised)
            own = self.entry.recognised(folder) >= 0.5
            wanted = f"choose its folder, {folder}" if own else f"choose the one that holds {parts}"
            raise CheckpointError(f"{self.place} is a file, but {self.entry.title} is a folder of files; {wanted}.")

    def info(self, **found: Any) -> ModelInfo:
        """Information on the model: known before reading, and ``found`` while reading."""
        copied = "id", "title", "family", "licence", "guidance", "codes_per_token", "mel_flow"
        known: dict[str, Any] = {name: getattr(self.entry, name) for name in copied} | {
            "variant": self.variant or self.entry.variant,
            "device": devices.title(self.device),
            "precision": "float32",
            "knobs": self.entry.options,
            "vocoder": self._other_vocoder(),
        }
        return ModelInfo(**known | found)

    @property
    def vocoder_folder(self) -> Path:
        """The requested vocoder, else one next to the model, else the catalogue's."""
        if self.own_vocoder:
            return Path(self.own_vocoder)
        own = (self.place if self.place.is_dir() else self.place.parent).parent / self.entry.vocoder
        return own if own.is_dir() else self.entry.vocoder_folder

    def vocoder(self) -> Vocoder:
        """Read the model's vocoder. Raises :class:`CheckpointError`."""
        folder = self.vocoder_folder
        self.status(f"Reading the vocoder in {folder.name} …")
        return load_vocoder(folder, self.device, self.check)

    def natural_vocoder(self) -> LatentVocoder:
        """Read the vocoder of a model of natural speech. Raises :class:`CheckpointError`."""
        vocoder = self.vocoder()
        if not isinstance(vocoder, LatentVocoder):
            raise CheckpointError(
                f"The model in {self.place} makes natural speech, which the vocoder in {self.vocoder_folder} cannot "
                "decode; put that of natural speech there."
            )
        return vocoder

    def _other_vocoder(self) -> str:
        """SHA-256 of the user's vocoder, or ``""`` if it equals the default one."""
        if not self.own_vocoder:
            return ""
        own, usual = (
            "\n".join(f"{one.name}:{fingerprint(one, self.check)}" for one in weight_files(folder) if one.is_file())
            for folder in (Path(self.own_vocoder), replace(self, own_vocoder="").vocoder_folder)
        )
        return "" if own in ("", usual) else hashlib.sha256(own.encode()).hexdigest()


_FAMILIES = {
    FLOW: "paretone.models.families.flow:FlowSpeech",
    LANGUAGE: "paretone.models.families.language:LanguageSpeech",
    MASKED: "paretone.models.families.masked:MaskedSpeech",
}
"""What a loader gives, imported on use, so that loading one model does not import the code of others."""


def load(
    model: str, folder: str, variant: str, device: str, status: Status, check: Check, vocoder: str = ""
) -> SpeechModel:
    """See :func:`paretone.models.load_model`."""
    chosen = entry(model)
    place = chosen.folder_at(folder)
    torch.set_num_threads(devices.thread_count())
    # As speech takes shape, activations decay to denormal numbers, which processors compute in microcode: the input
    # convolutions of late steps took three times as long. Numbers that small are inaudible.
    torch.set_flush_denormal(True)
    keep_freed_memory()
    status(f"Reading {chosen.title} …")
    on = devices.choose(device)
    chosen.require_vocoder(vocoder)
    weights = weight_files(place / chosen.weights)
    if is_lora(place):
        raise lora_error(place)
    if not (weights or plug_in(chosen.id) or id_of(str(place))) and (inner := within(place)):
        names = named_first([str(one.relative_to(place)) for one in inner], 5)
        raise CheckpointError(f"{place} holds no weights, but there are some in {names}; choose one of these folders.")
    # As in a clone without Git LFS; otherwise the error would name the first missing file of another kind.
    if weights and not any(map(is_regular, weights)):
        require_part(weights[0], "choose another folder or download the model")
    request = LoadRequest(chosen, place, variant, on, status, check, vocoder)
    # Loading does not hash these parts of bundled models.
    parts = place / "tokenizer", place / "codec", request.vocoder_folder, resource("models", "natural-decoder")
    require_parts_shipped = verified_meanwhile(parts)
    loader = replace(Part.of(chosen.loader), owner=plug_in(chosen.id))
    if on.type == "cpu":
        with few_rows.compiling(status, check):
            attention.machine_code()
            if chosen.family == LANGUAGE:
                few_rows.machine_code()
                tokens.machine_code()
            elif chosen.family == MASKED:
                fused_masked.machine_code()
    speech: FlowSpeech | LanguageSpeech | MaskedSpeech = loader.make(request)
    family = _FAMILIES[chosen.family]
    if loader.owner and not isinstance(speech, imported(family)):
        raise loader.wrong(speech, f"a {family.partition(':')[2]}, as its family is {chosen.family}")
    info = speech.look_for_weights(check)
    language: tuple[TrainedWeights, ...] = (*info.drafts, *info.feature_drafts, *info.students)
    require_shipped(Path(info.checkpoint), info.fingerprint)
    for one in (*info.weight_sets, *info.interval_weights, *language):
        require_shipped(Path(one.path), one.fingerprint)
    speech.info = replace(info, lacking=(*info.lacking, *devices.lacking(on)), device_type=on.type)
    status("Warming up …")
    speech.source = loader
    with loader.blamed():
        speech.warm_up()
    require_parts_shipped()
    return speech
