"""Targets: the forms in which a profile runs without Paretone, and their accounts. Torch-free.

Each program that profiles are exported for is a file in :mod:`paretone.export.programs`, named in :data:`PROGRAMS`,
with a ``TARGET``. A technique's contribution is in the module named by
:attr:`paretone.techniques.base.Technique.exports`, with any of:

- ``carried(target, entry, artefact)``: a :class:`paretone.export.accounts.Carried`; without it, the technique is
  dropped everywhere. It tests the target's capabilities (:attr:`Target.takes`), never its name;
- ``TARGETS``: targets of the technique's own;
- ``weights(profile, checkpoint, check)``: the weights that an F5-TTS profile runs in place of the checkpoint's, an
  :class:`paretone.export.exported_weights.ExportedWeights`, or ``None``;
- ``KIND`` and ``SETTINGS_FILE``: kind of the technique's language-model weights, and the file for their settings.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from paretone.errors import CheckpointError, PlugInError, ProfileError, SettingError
from paretone.export.accounts import OPTIONS, Account, Carried, OptionLedger, whole_line
from paretone.export.delivery import Content, deliver
from paretone.models.base import OfficialIds, OfficialPrompt
from paretone.models.catalogue import entry
from paretone.models.f5.config import LAYOUT as F5
from paretone.observer import Observer
from paretone.setting.knobs import Values
from paretone.setting.plan import kind_of
from paretone.setting.profile import Profile
from paretone.setting.setting import UsedTechnique
from paretone.techniques import foreseen, technique
from paretone.techniques.registry import brought as modules_of
from paretone.techniques.registry import plug_in, registry, report_taken

PROGRAMS = ("f5_tts", "f5_triton", "vllm_omni", "sglang", "omnivoice", "crispasr", "transformers", "vllm", "gguf")
"""Files of :mod:`paretone.export.programs`, in the order of lists."""


@dataclass(frozen=True)
class Order:
    profile: Profile
    account: Account
    model_folder: str
    """Folder of the checkpoint; ``""``: the catalogue's."""
    follower: Observer


@dataclass(frozen=True)
class Target:
    name: str
    title: str
    summary: str
    """Contents of the written folder."""
    program: str
    """The program, as sentences call it: ``the official package``."""
    why_not: Callable[[Profile, bool], str]
    """Reason why a profile cannot be exported, whatever its techniques, as a sentence, or ``""``; the second argument
    says whether the checkpoint has its guidance in its weights."""
    options: Callable[[OptionLedger], None]
    """Records the treatment of each sampler option."""
    contents: Callable[[Order], Mapping[str, Content]]
    """The files by name, with ``/`` for folders. May import torch, take long, and raise
    :class:`paretone.errors.PlainError`; must call ``follower.check`` while it does."""
    takes: frozenset[str] = frozenset()
    """Capabilities for techniques; see :mod:`paretone.export.accounts`."""
    reads: bool = True
    """Whether the export reads the profile's checkpoint, which must then exist."""


def checkpoint_folder(profile: Profile, model_folder: str) -> Path:
    """Expected folder of the checkpoint of ``profile``; ``model_folder`` as in :class:`Order`."""
    return Path(model_folder) if model_folder else entry(profile.setting.model).folder


def targets() -> tuple[Target, ...]:
    found = {one.name: one for one in (import_module(f"paretone.export.programs.{name}").TARGET for name in PROGRAMS)}
    for owner, module in modules_of("exports"):
        brought = getattr(module, "TARGETS", ())
        if not isinstance(brought, tuple) or not all(isinstance(one, Target) for one in brought):
            registry().report(f"{owner.title}: TARGETS of {module.__name__} must be a tuple of Target; mend it.")
            continue
        for target in brought:
            if target.name in found:
                report_taken(owner, "export target", target.name)
            found.setdefault(target.name, target)
    return tuple(found.values())


def target(name: str) -> Target:
    """Target called ``name``. Raises :class:`SettingError`, which lists all names, if there is none."""
    known = targets()
    found = next((one for one in known if one.name == name), None)
    if found is None:
        raise SettingError(f"There is no export target {name!r}; choose one of {', '.join(one.name for one in known)}.")
    return found


def account(chosen: Target, profile: Profile, guided_weights: bool = False) -> Account:
    """Account of ``profile`` for ``chosen``, or the reason why it cannot be exported. ``guided_weights``: whether its
    checkpoint has its guidance in its weights."""
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
    model, options = entry(setting.model), foreseen(setting).options
    if guided_weights:  # As in synthesis, guidance in the weights switches further guidance off.
        options = model.guidance.off(options)
    ledger = OptionLedger(model, options, setting.seed, given)
    chosen.options(ledger)
    ledger.drop_rest(f"{chosen.program} has no such option")
    return Account(
        (*ledger.lines(carried=True), *(line for one in carried for line in one.honours)),
        (*ledger.lines(carried=False), *(line for one in carried for line in one.drops)),
        options=ledger.options,
        techniques=setting.techniques,
        given=given,
    )


def _brought(chosen: Target, profile: Profile) -> Iterator[tuple[UsedTechnique, Carried]]:
    modules = {one.name: module for one, module in modules_of("exports")}
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
    """Contribution of a technique to a target without support for it. Techniques that replace the weights are refused:
    nothing of them would remain."""
    declared = technique(used.technique)
    if declared.weights is not None and declared.weights.required:
        return Carried(
            why_not=f"{declared.title} replaces the model's weights, and its own cannot be given to {chosen.program}; "
            "export a profile without it."
        )
    return Carried(drops=(whole_line(used, f"{chosen.program} has nothing like it"),))


def export(profile: Profile, name: str, folder: Path, follower: Observer, model_folder: str = "") -> tuple[Path, ...]:
    """Export ``profile`` to the target called ``name``, into ``folder``: all files or none; return the files.

    ``model_folder`` holds the checkpoint if it is not the catalogue's. Raises :class:`PlainError` as :func:`deliver`
    does, and if the profile cannot be exported.
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
    """Account of ``profile`` for ``chosen``, reading only metadata of the checkpoint. Raises :class:`ProfileError` if
    the target needs the checkpoint and it is missing."""
    place = checkpoint_folder(profile, model_folder)
    if place.exists():
        return account(chosen, profile, _guided_weights(profile, place))
    if not chosen.reads:
        return account(chosen, profile)
    # First the reasons in the profile itself.
    said = account(chosen, profile, guided_weights=True)
    if said.why_not:
        return said
    raise ProfileError(f"The profile's checkpoint is not in {place}; download it, or give its folder.")


def _guided_weights(profile: Profile, place: Path) -> bool:
    """Whether the checkpoint in ``place`` has its guidance in its weights, as F5-TTS's can. False for an unreadable
    one: the later reader reports the error."""
    if entry(profile.setting.model).layout != F5:
        return False
    from paretone.models.f5.checkpoint import find_checkpoint
    from paretone.models.files.trained_weights import trained_guidance

    try:
        return trained_guidance(find_checkpoint(place)) is not None
    except CheckpointError:
        return False


def carried(target: Target, entry: UsedTechnique, artefact: object) -> Carried:
    """Contribution of a technique that only sets sampler options and whose ``exports`` names this module: one line. The
    account of options has a line for each."""
    if OPTIONS not in target.takes:
        return lacking(target, entry)
    return Carried((whole_line(entry, "as sampler options, as far as those are honoured"),))


def described(title: str, order: Order, parts: Sequence[str], not_run: str = "") -> dict[str, Content]:
    """The profile, and a README: purpose, ``parts`` in Markdown, account. ``not_run``: what was never run against the
    real program."""
    profile = order.profile
    heading = (
        f"# A Paretone profile for {title}\n\n"
        f"Model: {entry(profile.setting.model).title} ({profile.variant}). The profile was made on the checkpoint "
        f"with SHA-256\n`{profile.checkpoint}`;\nwith other weights it may sound worse.\n"
    )
    untried = [f"## Not tried\n\n{not_run}\n"] if not_run else []
    ending = (
        '`profile.json` is the profile itself: `paretone speak --profile profile.json --text "…" --out out.wav` speaks '
        "with\nall of it.\n"
    )
    text = "\n".join([heading, *parts, lists(order.account), *untried, ending])
    return {"profile.json": profile.encoded(), "README.md": text.encode()}


def lists(account: Account) -> str:
    found = []
    for title, lines in (("Honoured of the profile", account.honours), ("Dropped", account.drops)):
        items = "".join(f"* {line.subject}: {line.how}\n" for line in lines)
        found.append(f"## {title}\n\n" + (items or "Nothing.\n"))
    return "\n".join(found)


def block(language: str, text: str) -> str:
    return f"```{language}\n{text.strip()}\n```\n"


def json_file(data: Mapping[str, object]) -> bytes:
    return (json.dumps(data, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()


_FOLDER = Path(__file__).parent / "copied"


def copied(name: str) -> bytes:
    return (_FOLDER / f"{name}.py").read_bytes()


# --- Prompts ----------------------------------------------------------------------------------------------------------
PROMPTS = "prompts.json"
KIND, SCHEMA = "paretone prompts", 1
SAMPLING = ("temperature", "top_k", "top_p", "repetition_penalty", "repeats")


def sampling_of(options: Values) -> dict[str, Any]:
    return {name: options[name] for name in SAMPLING if name in options}


def prompts_file(ids: OfficialIds, prompts: Sequence[OfficialPrompt], voice: str, options: Values) -> bytes:
    """File of ``prompts`` in the voice named ``voice``, under ``options``."""
    vocabulary = {"size": ids.size, "first_code": ids.first_code, "codes": ids.codes, "stops": list(ids.stops)}
    listed = [
        {
            "text": one.text,
            "voice": voice,
            "ids": list(one.ids),
            "positions": None if one.positions is None else list(one.positions),
            "minimum": one.minimum,
            "maximum": one.maximum,
        }
        for one in prompts
    ]
    content = {
        "kind": KIND,
        "schema": SCHEMA,
        "vocabulary": vocabulary,
        "sampling": sampling_of(options),
        "prompts": listed,
    }
    return (json.dumps(content) + "\n").encode()
