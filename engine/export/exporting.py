"""Exporting a profile: what a target takes, written into a folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from engine.errors import ProfileError
from engine.export import f5_tts
from engine.export.delivery import deliver
from engine.export.exported_weights import ExportedWeights, companions
from engine.export.targets import F5_TTS, exporting, target, why_not
from engine.models.base import WorkObserver
from engine.models.catalogue import entry
from engine.models.f5.checkpoint import F5Checkpoint, read_f5_checkpoint
from engine.models.files.checkpoints import fingerprint, is_packed_file, plain_file
from engine.models.files.weight_sets import trained_guidance
from engine.setting.profile import Profile


def export(
    profile: Profile, name: str, folder: Path, follower: WorkObserver, model_folder: str = ""
) -> tuple[Path, ...]:
    """Export ``profile`` to the target called ``name``, into ``folder``: all files or none; the files.

    ``model_folder`` holds the checkpoint if it is not where the catalogue has it. Raises :class:`PlainError` as
    :func:`deliver` does, and where the profile cannot be exported so.
    """
    chosen = target(name)
    # What the profile alone says is said before anything is read.
    _require(why_not(chosen, profile, guided_weights=True))
    follower.status("Reading the checkpoint")
    checkpoint = checkpoint_of(profile, model_folder, follower.check)
    _require(why_not(chosen, profile, trained_guidance(checkpoint.path) is not None))
    weights = _weights(profile, checkpoint, follower.check)
    contents = f5_tts.contents(profile, checkpoint, weights) if chosen is F5_TTS else {}
    if weights is not None:
        contents |= weights.contents()
    elif is_packed_file(checkpoint.path):
        # Other software cannot read the file that this installation has.
        contents[checkpoint.path.name] = plain_file(checkpoint.path, follower.check)
        contents |= companions(checkpoint.path.parent)
    follower.status(f"Writing to {folder}")
    return deliver(folder, contents, follower.progress)


def _weights(profile: Profile, checkpoint: F5Checkpoint, check: Callable[[], None]) -> ExportedWeights | None:
    """Those that the profile runs with in place of the checkpoint's."""
    for _, module in exporting():
        found = module.weights(profile, checkpoint, check) if hasattr(module, "weights") else None
        if found is not None:
            return found
    return None


def checkpoint_of(profile: Profile, model_folder: str, check: Callable[[], None]) -> F5Checkpoint:
    """The checkpoint that ``profile`` is for. Raises :class:`PlainError` when it is not there, or another one is."""
    chosen = entry(profile.setting.model)
    place = Path(model_folder) if model_folder else chosen.folder
    if not place.exists():
        raise ProfileError(f"The profile's checkpoint is not in {place}; download it, or give its folder.")
    checkpoint = read_f5_checkpoint(place, profile.named_variant, check)
    if checkpoint.config.backbone != "DiT":
        raise ProfileError(
            f"{checkpoint.variant} is not a diffusion transformer; only F5-TTS profiles can be exported."
        )
    found = fingerprint(checkpoint.path, check)
    if found != profile.checkpoint:
        raise ProfileError(
            f"The profile is for the checkpoint {profile.checkpoint[:12]!r}, but {checkpoint.path} is {found[:12]!r}; "
            "name the folder of the right one."
        )
    return checkpoint


def _require(problem: str) -> None:
    if problem:
        raise ProfileError(problem)
