"""Common parts of the targets for F5-TTS: admissible profiles, the checkpoint, and the weights to run.

Torch-free until a checkpoint is read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from paretone.errors import ProfileError
from paretone.export.accounts import OptionLedger
from paretone.export.delivery import Content
from paretone.export.targets import Order, Target, checkpoint_folder
from paretone.models.catalogue import entry
from paretone.models.f5.config import LAYOUT as F5
from paretone.models.f5.config import VARIANTS
from paretone.observer import Check
from paretone.sampling.schedules import EPSS, effective_spacing
from paretone.setting.profile import Profile
from paretone.techniques.registry import brought, plug_in

if TYPE_CHECKING:
    from paretone.export.exported_weights import ExportedWeights
    from paretone.models.f5.checkpoint import F5Checkpoint

SWAY = -1.0
"""The only sway of these targets."""


def own_grid(ledger: OptionLedger) -> None:
    """Record the options that a server fixes: EPSS if there is a table, a sway of -1, the Euler solver."""
    options = ledger.options
    epss = effective_spacing(options["steps"], options["spacing"]) == "epss" or options["steps"] not in EPSS
    ledger.honour_if(epss, "it has the same grid", "it always takes EPSS where there is a table", "spacing")
    ledger.honour_if(options["sway"] == SWAY, "it has no other", f"it always takes {SWAY:g}", "sway")
    ledger.honour_if(options["solver"] == "euler", "it has no other", "it has Euler only", "solver")
    ledger.drop("it cuts long texts in its own way, or not at all", "cross_fade", "quick_start")


def why_not_f5(profile: Profile, guided_weights: bool, package: str = "the f5_tts package") -> str:
    """Sentence why a profile is not for a diffusion transformer of F5-TTS, which ``package`` runs, or ``""``."""
    model = entry(profile.setting.model)
    if model.layout != F5:
        return (
            f"The profile is for {model.title}, which is not a model of {package}; only F5-TTS profiles can be "
            "exported so."
        )
    found = VARIANTS.get(profile.variant)
    if found is not None and found.backbone != "DiT":
        return f"{profile.variant} is not a diffusion transformer; only F5-TTS profiles can be exported so."
    return ""


def read_checkpoint(order: Order) -> F5Checkpoint:
    """Read the profile's checkpoint. Raises :class:`PlainError` if it is missing or another one is found."""
    from paretone.models.f5.checkpoint import read_f5_checkpoint
    from paretone.models.files.checkpoints import fingerprint

    profile, check = order.profile, order.follower.check
    place = checkpoint_folder(profile, order.model_folder)
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


def weights_of(profile: Profile, checkpoint: F5Checkpoint, check: Check = lambda: None) -> ExportedWeights | None:
    """Weights that the profile runs in place of the checkpoint's, if any."""
    for one, module in brought("exports"):
        # Ask a plug-in only if it is in use: a failing one must not stop the exports of others.
        if not hasattr(module, "weights") or (plug_in(one.name) and profile.setting.technique(one.name) is None):
            continue
        found = module.weights(profile, checkpoint, check)
        if found is not None:
            return found
    return None


def weights_target(
    name: str,
    title: str,
    summary: str,
    takes: str,
    why_not: Callable[[Profile, bool], str],
    weights: Callable[[Profile, F5Checkpoint, Callable[[], None]], ExportedWeights | None],
) -> Target:
    """Target that writes only a technique's ``weights`` of F5-TTS; ``takes``: their capability. Others as in
    :class:`Target`."""

    def why_not_written(profile: Profile, guided_weights: bool) -> str:
        return why_not_f5(profile, guided_weights) or why_not(profile, guided_weights)

    def options(ledger: OptionLedger) -> None:
        ledger.drop_rest("only weights are written")

    def contents(order: Order) -> Mapping[str, Content]:
        found = weights(order.profile, read_checkpoint(order), order.follower.check)
        return {} if found is None else found.contents()

    return Target(name, title, summary, "a file of weights", why_not_written, options, contents, frozenset({takes}))
