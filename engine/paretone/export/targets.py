"""The forms in which a profile runs without Paretone, and what each of them honours of a profile. Torch-free.

A program that profiles are exported for is a file in :mod:`paretone.export.programs`, named in :data:`PROGRAMS`, with a
``TARGET``. What a technique brings is in the module that :attr:`paretone.techniques.base.Technique.exports` names, with
any of:

- ``carried(target, entry, artefact)``: a :class:`paretone.export.accounts.Carried`; a technique without it is dropped
  everywhere. It asks what the target can take (:attr:`Target.takes`), never which one it is;
- ``TARGETS``: forms of the technique's own;
- ``weights(profile, checkpoint, check)``: the weights that an F5-TTS profile runs with in place of the checkpoint's, an
  :class:`paretone.export.exported_weights.ExportedWeights`, or ``None``;
- ``KIND`` and ``SETTINGS_FILE``: which weights of language models are the technique's, and where settings for them go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from paretone.errors import CheckpointError, PlugInError, ProfileError, SettingError
from paretone.export.accounts import OPTIONS, Account, Carried, OptionLedger, whole_line
from paretone.export.delivery import deliver
from paretone.models.catalogue import F5, entry
from paretone.setting.plan import kind_of
from paretone.setting.profile import Profile
from paretone.setting.setting import Setting, UsedTechnique
from paretone.techniques import Technique, foreseen, technique
from paretone.techniques.registry import brought as modules_of
from paretone.techniques.registry import plug_in, registry

if TYPE_CHECKING:
    from paretone.export.delivery import Content
    from paretone.observer import Observer


PROGRAMS = (
    "f5_tts",
    "f5_triton",
    "vllm_omni",
    "sglang",
    "omnivoice",
    "crispasr",
    "transformers",
    "vllm",
    "gguf",
)
"""The files of :mod:`paretone.export.programs`, in the order of lists."""


@dataclass(frozen=True)
class Order:
    profile: Profile
    account: Account
    model_folder: str
    """Folder of the checkpoint, or ``""`` for where the catalogue has it."""
    follower: Observer

    @property
    def checkpoint_folder(self) -> Path:
        return checkpoint_folder(self.profile, self.model_folder)


@dataclass(frozen=True)
class Target:
    name: str
    title: str
    summary: str
    """Contents of the written folder."""
    program: str
    """What runs it, as sentences call it: ``the official package``."""
    why_not: Callable[[Profile, bool], str]
    """Why a profile cannot be exported so, whatever its techniques, as a sentence, or ``""``; also told whether the
    checkpoint has its guidance in its weights."""
    options: Callable[[OptionLedger], None]
    """Says what becomes of each sampler option."""
    contents: Callable[[Order], Mapping[str, Content]]
    """The files by name, with ``/`` for folders. May import torch, take long, and raise
    :class:`paretone.errors.PlainError`; must call ``follower.check`` while it does."""
    takes: frozenset[str] = frozenset()
    """What of techniques it can take; see :mod:`paretone.export.accounts`."""
    reads: bool = True
    """Whether it reads the profile's checkpoint, which then has to be there."""


def checkpoint_folder(profile: Profile, model_folder: str) -> Path:
    """Where the checkpoint that ``profile`` is for should be; ``model_folder`` as in :class:`Order`."""
    return Path(model_folder) if model_folder else entry(profile.setting.model).folder


def exporting() -> Iterator[tuple[Technique, ModuleType]]:
    """The techniques that say something of exports, and their modules."""
    yield from modules_of("exports")


def targets() -> tuple[Target, ...]:
    found = {one.name: one for one in (import_module(f"paretone.export.programs.{name}").TARGET for name in PROGRAMS)}
    for owner, module in exporting():
        brought = getattr(module, "TARGETS", ())
        if not isinstance(brought, tuple) or not all(isinstance(one, Target) for one in brought):
            registry().report(f"{owner.title}: TARGETS of {module.__name__} must be a tuple of Target; mend it.")
            continue
        for target in brought:
            if target.name in found:
                registry().report(
                    f"{owner.title}: its export target {target.name!r} was left out: there is one of that name; "
                    "rename it."
                )
            found.setdefault(target.name, target)
    return tuple(found.values())


def target(name: str) -> Target:
    """The target called ``name``. Raises :class:`SettingError` naming all if there is none."""
    known = targets()
    found = next((one for one in known if one.name == name), None)
    if found is None:
        raise SettingError(f"There is no export target {name!r}; choose one of {', '.join(one.name for one in known)}.")
    return found


def account(chosen: Target, profile: Profile, guided_weights: bool = False) -> Account:
    """What ``chosen`` honours and drops of ``profile``, or why it cannot have it.

    ``guided_weights``: whether the checkpoint that it is for has its guidance in its weights.
    """
    reason = chosen.why_not(profile, guided_weights)
    if reason:
        return Account(why_not=reason)
    setting, carried = profile.setting, []
    for one, brought in _brought(chosen, profile):
        if brought.why_not:
            return Account(why_not=brought.why_not)
        carried.append(brought)
        if not brought.honours:
            setting = setting.without(one.technique)
    given = {name: value for one in carried for name, value in one.given.items()}
    ledger = _ledger(setting, guided_weights, given)
    chosen.options(ledger)
    ledger.drop_rest(f"{chosen.program} has no such option")
    return Account(
        (*ledger.honours, *(line for one in carried for line in one.honours)),
        (*ledger.drops, *(line for one in carried for line in one.drops)),
        options=ledger.options,
        techniques=setting.techniques,
        given=given,
    )


def _brought(chosen: Target, profile: Profile) -> Iterator[tuple[UsedTechnique, Carried]]:
    modules = {one.name: module for one, module in exporting()}
    artefacts = {one.fingerprint: one for one in profile.artefacts}
    for one in profile.setting.techniques:
        carry = getattr(modules.get(one.technique), "carried", None)
        if carry is None:
            yield one, lacking(chosen, one)
            continue
        found = carry(chosen, one, artefacts.get(one.artefact))
        if not isinstance(found, Carried):
            raise PlugInError(
                f"carried of {technique(one.technique).title} gave {kind_of(found)}, but must give a Carried; mend "
                f"{plug_in(one.technique) or 'it'}."
            )
        yield one, found


def lacking(chosen: Target, used: UsedTechnique) -> Carried:
    """What a technique brings to a target that has nothing like it. What replaces the weights is refused: without
    them, nothing of it would be left."""
    declared = technique(used.technique)
    if declared.weights is not None and declared.weights.required:
        return Carried(
            why_not=f"{declared.title} replaces the model's weights, and its own cannot be given to {chosen.program}; "
            "export a profile without it."
        )
    return Carried(drops=(whole_line(used, f"{chosen.program} has nothing like it"),))


def _ledger(setting: Setting, guided_weights: bool, given: Mapping[str, Any]) -> OptionLedger:
    """For the options that hold under ``setting``: as in synthesis, guidance in the weights takes no more on top."""
    model = entry(setting.model)
    options = foreseen(setting).options
    if guided_weights:
        options = model.guidance.off(options)
    return OptionLedger(model, options, setting.seed, given)


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
    from paretone.models.f5.checkpoint import find_checkpoint
    from paretone.models.files.trained_weights import trained_guidance

    try:
        return trained_guidance(find_checkpoint(place)) is not None
    except CheckpointError:
        return False


def carried(target: Target, entry: UsedTechnique, artefact: object) -> Carried:
    """What a technique brings that only sets sampler options, and whose ``exports`` name this module: one line. The
    account of options has a line for each."""
    if OPTIONS not in target.takes:
        return lacking(target, entry)
    return Carried((whole_line(entry, "as sampler options, as far as those are honoured"),))
