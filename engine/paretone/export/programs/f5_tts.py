"""A profile as a folder for the official ``f5_tts`` package: its settings, and the module that applies them.

Torch-free until it is written.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from paretone.export.accounts import F5_WEIGHTS, OPTIONS, SEED, TABLE, Account, OptionLedger
from paretone.export.delivery import Content
from paretone.export.f5_models import read_checkpoint, weights_of, why_not_f5
from paretone.export.targets import Order, Target, copied, lists
from paretone.setting.profile import Profile

if TYPE_CHECKING:
    from torch import Tensor

    from paretone.export.exported_weights import ExportedWeights
    from paretone.models.f5.checkpoint import F5Checkpoint

PROBES_PER_TENSOR = 2
SAMPLING = ("solver", "steps", "spacing", "sway", "guidance")


def options(ledger: OptionLedger) -> None:
    """The module sets the options of the mel; the rest are arguments of the package's ``infer``."""
    ledger.honour("set by paretone_profile.apply", *SAMPLING)
    ledger.drop("an argument of the package's infer", "speed", SEED)
    ledger.drop("the argument cross_fade_duration of the package's infer", "cross_fade")
    ledger.drop("the package cuts long texts itself", "quick_start")


def contents(order: Order) -> dict[str, Content]:
    """Files of the folder, including probe values of the weights, which detect other checkpoints."""
    from paretone.export.copied import paretone_profile
    from paretone.export.exported_weights import packed_checkpoint

    checkpoint = read_checkpoint(order)
    weights = weights_of(order.profile, checkpoint, order.follower.check)
    description = describe(order.profile, order.account, checkpoint, None if weights is None else weights.tensors)
    return {
        paretone_profile.FILE: (json.dumps(description, indent=1) + "\n").encode(),
        "profile.json": order.profile.encoded(),
        "paretone_profile.py": copied("paretone_profile"),
        "README.md": _readme(order.profile, order.account, checkpoint, weights).encode(),
        **(packed_checkpoint(checkpoint.path) if weights is None else weights.contents()),
    }


def describe(
    profile: Profile, account: Account, checkpoint: F5Checkpoint, weights: Mapping[str, Tensor] | None = None
) -> dict[str, Any]:
    """Data for ``paretone_profile.apply``, as JSON values. ``weights`` replace the checkpoint's own."""
    from paretone.export.copied import paretone_profile
    from paretone.sampling.flow import sampling_grid

    chosen = account.options
    config = checkpoint.config
    return {
        "kind": paretone_profile.KIND,
        "schema": paretone_profile.SCHEMA,
        "variant": profile.variant,
        "checkpoint": profile.checkpoint,
        "architecture": {"pe_attn_head": config.pe_attn_head, "text_mask_padding": config.text_mask_padding},
        "sampling": {name: chosen[name] for name in SAMPLING},
        "times": sampling_grid(chosen["steps"], chosen["spacing"], chosen["sway"]).tolist(),
        "table": account.given.get("table"),
        "probes": probes(weights or checkpoint.weights),
    }


def probes(weights: Mapping[str, Tensor]) -> dict[str, list[list[float]]]:
    """A few values of every weight with their positions: enough to distinguish two checkpoints."""
    found = {}
    for name, value in weights.items():
        flat = value.flatten()
        positions = sorted({index * (len(flat) - 1) // PROBES_PER_TENSOR for index in range(1, PROBES_PER_TENSOR + 1)})
        found[name] = [[position, flat[position].float().item()] for position in positions]
    return found


def _readme(profile: Profile, account: Account, checkpoint: F5Checkpoint, weights: ExportedWeights | None) -> str:
    from paretone.models.f5.config import CHARACTERS

    weight_file = checkpoint.path.name if weights is None else weights.name
    if checkpoint.text_front_end != CHARACTERS:
        use = (
            "from paretone_profile import apply, remove\n"
            'apply(cfm, "this folder")            # cfm: an f5_tts.model.CFM that holds the weights\n'
            "mel, _ = cfm.sample(prompt_mel, phone_ids, frames)"
        )
        note = (
            "\nThis model reads phones, one a frame, made from text by Paretone, not by the official package, whose\n"
            "`CFM.sample` adds a frame: at the same seed, its speech is one frame longer than Paretone's.\n"
        )
    else:
        use = (
            "from f5_tts.api import F5TTS; import paretone_profile\n"
            f'tts = F5TTS(model="{profile.variant}", ckpt_file="{weight_file}")\n'
            'paretone_profile.apply(tts.ema_model, "this folder")'
        )
        note = "\nThen use `tts.infer(…)` as usual; `paretone_profile.remove(tts.ema_model)` removes the profile.\n"
    return (
        f"# A Paretone profile for the official F5-TTS package\n\n```python\n{use}\n```\n{note}\n"
        f"* Model: {profile.variant}; weights: `{weight_file}`; profile made on the checkpoint with SHA-256\n"
        f"  `{profile.checkpoint}`\n"
        "* `f5_tts.json` is what `paretone_profile.py` reads; `profile.json` runs in Paretone "
        '(`paretone speak --profile profile.json --text "…" --out out.wav`).\n\n'
        f"{lists(account)}\n"
        "Needs `pip install f5-tts==1.1.20`. `paretone_profile.py` is licensed under Apache-2.0; the weights keep "
        "their own licence.\n"
    )


TARGET = Target(
    "f5-tts",
    "Official F5-TTS package",
    "the profile and a module that applies it to the official package",
    "the official package",
    why_not_f5,
    options,
    contents,
    frozenset({OPTIONS, F5_WEIGHTS, TABLE}),
)
