"""Exporting a profile: what a target takes, written into a folder."""

from __future__ import annotations

from pathlib import Path

from paretone.errors import CheckpointError, ProfileError
from paretone.export.accounts import Account
from paretone.export.delivery import deliver
from paretone.export.targets import Order, Target, account, checkpoint_folder, target
from paretone.models.catalogue import F5, entry
from paretone.models.f5.checkpoint import find_checkpoint
from paretone.models.files.weight_sets import trained_guidance
from paretone.observer import Observer
from paretone.setting.profile import Profile


def export(profile: Profile, name: str, folder: Path, follower: Observer, model_folder: str = "") -> tuple[Path, ...]:
    """Export ``profile`` to the target called ``name``, into ``folder``: all files or none; the files.

    ``model_folder`` holds the checkpoint if it is not where the catalogue has it. Raises :class:`PlainError` as
    :func:`deliver` does, and where the profile cannot be exported so.
    """
    chosen = target(name)
    said = say(profile, chosen, model_folder)
    if said.why_not:
        raise ProfileError(said.why_not)
    if chosen.reads:
        follower.status("Reading the checkpoint")
    contents = chosen.contents(Order(profile, said, model_folder, follower))
    follower.status(f"Writing to {folder}")
    return deliver(folder, contents, follower.progress)


def say(profile: Profile, chosen: Target, model_folder: str = "") -> Account:
    """What ``chosen`` honours and drops of ``profile``; of the checkpoint, only what its metadata says is read. Raises
    :class:`ProfileError` if the target needs the checkpoint and it is not there."""
    place = checkpoint_folder(profile, model_folder)
    if place.exists():
        return account(chosen, profile, _guided_weights(profile, place))
    if not chosen.reads:
        return account(chosen, profile)
    # What the profile alone says comes first.
    said = account(chosen, profile, guided_weights=True)
    if said.why_not:
        return said
    raise ProfileError(f"The profile's checkpoint is not in {place}; download it, or give its folder.")


def _guided_weights(profile: Profile, place: Path) -> bool:
    """Whether the checkpoint in ``place`` has its guidance in its weights, as those of F5-TTS can. One that cannot be
    read has not: who reads it, says why."""
    if entry(profile.setting.model).kind != F5:
        return False
    try:
        return trained_guidance(find_checkpoint(place)) is not None
    except CheckpointError:
        return False
