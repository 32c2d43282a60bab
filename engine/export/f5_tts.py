"""A profile as a folder that runs in the official ``f5_tts`` package: what to do, and the module that does it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch import Tensor

from engine.export import paretone_profile
from engine.export.targets import exporting
from engine.models.f5.checkpoint import CHARACTERS, F5Checkpoint
from engine.models.files.weight_sets import trained_guidance
from engine.sampling.flow import sampling_grid
from engine.setting.knobs import Values
from engine.setting.profile import Profile
from engine.techniques import options_in_force

if TYPE_CHECKING:
    from engine.export.exported_weights import ExportedWeights

PROBES_PER_TENSOR = 2


def contents(profile: Profile, checkpoint: F5Checkpoint, weights: ExportedWeights | None) -> dict[str, bytes]:
    """The folder's files by name, without the ``weights`` that the profile runs with in place of those of
    ``checkpoint``. Values of the weights are noted down, so that the profile is not applied to others."""
    description = describe(profile, checkpoint, None if weights is None else weights.tensors)
    return {
        paretone_profile.FILE: (json.dumps(description, indent=1) + "\n").encode(),
        "profile.json": profile.encoded(),
        "paretone_profile.py": Path(paretone_profile.__file__).read_bytes(),
        "README.md": _readme(profile, checkpoint, weights).encode(),
    }


def describe(profile: Profile, checkpoint: F5Checkpoint, weights: Mapping[str, Tensor] | None = None) -> dict:
    """Data for ``paretone_profile.apply``, as JSON values. ``weights`` are those to use in place of the checkpoint's
    own."""
    options = _options(profile, checkpoint)
    names = ("solver", "steps", "spacing", "sway", "guidance")
    config = checkpoint.config
    carried = {name: value for described in _of_artefacts(profile, "described") for name, value in described.items()}
    return {
        "kind": paretone_profile.KIND,
        "schema": paretone_profile.SCHEMA,
        "variant": profile.variant,
        "checkpoint": profile.checkpoint,
        "architecture": {"pe_attn_head": config.pe_attn_head, "text_mask_padding": config.text_mask_padding},
        "sampling": {name: options[name] for name in names},
        "times": sampling_grid(options["steps"], options["spacing"], options["sway"]).tolist(),
        "table": carried.get("table"),
        "probes": probes(weights or checkpoint.weights),
    }


def _of_artefacts(profile: Profile, what: str) -> list[Any]:
    """Texts of techniques (``described`` or ``readme``) on the profile's artefacts."""
    modules = {one.name: module for one, module in exporting()}
    artefacts = {one.fingerprint: one for one in profile.artefacts}
    used = [one for one in profile.setting.techniques if one.artefact in artefacts]
    return [getattr(modules[one.technique], what)(artefacts[one.artefact]) for one in used]


def probes(weights: Mapping[str, Tensor]) -> dict[str, list[list[float]]]:
    """A few values of every weight with their positions: enough to distinguish two checkpoints."""
    found = {}
    for name, value in weights.items():
        flat = value.flatten()
        positions = sorted({index * (len(flat) - 1) // PROBES_PER_TENSOR for index in range(1, PROBES_PER_TENSOR + 1)})
        found[name] = [[position, flat[position].float().item()] for position in positions]
    return found


def _options(profile: Profile, checkpoint: F5Checkpoint) -> Values:
    """The sampler options in force; a checkpoint with guidance in its weights takes none, as in synthesis."""
    options = options_in_force(profile.setting)
    return options if trained_guidance(checkpoint.path) is None else options.replace(guidance=0.0)


def _readme(profile: Profile, checkpoint: F5Checkpoint, weights: ExportedWeights | None) -> str:
    options = _options(profile, checkpoint)
    weight_file = checkpoint.path.name if weights is None else weights.name
    if checkpoint.text_front_end != CHARACTERS:
        use = (
            "from paretone_profile import apply, remove\n"
            'apply(cfm, "this folder")            # cfm: an f5_tts.model.CFM that holds the weights\n'
            "mel, _ = cfm.sample(prompt_mel, phone_ids, frames)"
        )
        note = "\nThis model reads phones, one a frame, made from text by Paretone, not by the official package.\n"
    else:
        use = (
            "from f5_tts.api import F5TTS; import paretone_profile\n"
            f'tts = F5TTS(model="{profile.variant}", ckpt_file="{weight_file}")\n'
            'paretone_profile.apply(tts.ema_model, "this folder")'
        )
        note = "\nThen use `tts.infer(…)` as usual; `paretone_profile.remove(tts.ema_model)` removes the profile.\n"
    skipped = "; ".join(_of_artefacts(profile, "readme")) or "none"
    return (
        f"# A Paretone profile for the official F5-TTS package\n\n```python\n{use}\n```\n{note}\n"
        f"* Model: {profile.variant}; weights: `{weight_file}`; profile made on the checkpoint with SHA-256\n"
        f"  `{profile.checkpoint}`\n"
        f"* Sampling: {options['steps']} steps ({options['spacing']}, sway {options['sway']:g}), {options['solver']}, "
        f"guidance {options['guidance']:g}\n"
        f"* Strategy table: {skipped}\n"
        "* `f5_tts.json` is what `paretone_profile.py` reads; `profile.json` runs in Paretone "
        '(`paretone speak --profile profile.json --text "…" --out out.wav`).\n\n'
        "Needs `pip install f5-tts==1.1.20`. `paretone_profile.py` is licensed under Apache-2.0; the weights keep "
        "their own licence.\n"
    )
