"""A profile as a folder that runs in the official ``f5_tts`` package: what to do, and the module that does it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

from torch import Tensor

from engine import files
from engine.errors import PlainError, ProfileError
from engine.export import paretone_profile
from engine.export.weights import GuidanceFreeWeights
from engine.knobs import Values
from engine.models.catalogue import entry
from engine.models.checkpoints import fingerprint
from engine.models.f5.checkpoint import F5Checkpoint, read_f5_checkpoint
from engine.models.weight_sets import cfg_free_weight
from engine.profile import Profile
from engine.sampling.flow import sampling_grid
from engine.techniques import ditreducio, guidance_free, reshaped, steps, technique

TRANSLATED = (ditreducio.TECHNIQUE.name, guidance_free.NAME, steps.TECHNIQUE.name)
"""The techniques that the official package can be given from outside."""
REUSE = "reuse"
"""The only kind of temporal skip that the official way knows."""
PROBES_PER_TENSOR = 2
_NOTHING_TO_CHECK: Callable[[], None] = lambda: None  # noqa: E731


def export(
    profile: Profile, folder: Path, model_folder: str = "", check: Callable[[], None] = _NOTHING_TO_CHECK
) -> tuple[Path, ...]:
    """Write the folder, which must exist; the files written.

    ``model_folder`` holds the checkpoint where it is not where the catalogue has it: values of its weights are noted
    down, so that the profile is not applied to another one. ``check`` is called now and then and may raise to cancel.
    Raises :class:`PlainError`.
    """
    _require_translation(profile)
    checkpoint = checkpoint_of(profile, model_folder, check)
    weights = GuidanceFreeWeights.of(profile, checkpoint)
    description = describe(profile, checkpoint, None if weights is None else weights.tensors)
    module = Path(paretone_profile.__file__).read_bytes()
    contents = {
        paretone_profile.FILE: (json.dumps(description, indent=1) + "\n").encode(),
        "profile.json": (json.dumps(profile.to_json(), indent=1, ensure_ascii=False) + "\n").encode(),
        "paretone_profile.py": module,
        "README.md": _readme(profile, checkpoint, weights).encode(),
    }
    written = []
    for name, content in contents.items():
        check()
        try:
            files.write_atomically(folder / name, content)
        except OSError as error:
            raise PlainError(f"{folder / name} could not be written: {files.reason(error)}.") from error
        written.append(folder / name)
    return (*written, *(() if weights is None else weights.write(folder)))


def describe(profile: Profile, checkpoint: F5Checkpoint, weights: Mapping[str, Tensor] | None = None) -> dict:
    """What ``paretone_profile.apply`` needs to know, as JSON values. ``weights`` are those to use in place of the
    checkpoint's own."""
    options = _options(profile, checkpoint)
    names = ("solver", "steps", "spacing", "sway", "guidance")
    config, table = checkpoint.config, profile.table
    return {
        "kind": paretone_profile.KIND,
        "schema": paretone_profile.SCHEMA,
        "variant": profile.variant,
        "checkpoint": profile.checkpoint,
        "architecture": {"pe_attn_head": config.pe_attn_head, "text_mask_padding": config.text_mask_padding},
        "sampling": {name: options[name] for name in names},
        "times": sampling_grid(options["steps"], options["spacing"], options["sway"]).tolist(),
        "table": None
        if table is None
        else {
            "branch_skip": table.branch_skip,
            "actions": [[action.name for action in row] for row in table.actions],
        },
        "probes": probes(weights or checkpoint.weights),
    }


def probes(weights: Mapping[str, Tensor]) -> dict[str, list[list[float]]]:
    """A few values of every weight with the positions at which they stand: enough to tell two checkpoints apart."""
    found = {}
    for name, value in weights.items():
        flat = value.flatten()
        positions = sorted({index * (len(flat) - 1) // PROBES_PER_TENSOR for index in range(1, PROBES_PER_TENSOR + 1)})
        found[name] = [[position, flat[position].float().item()] for position in positions]
    return found


def _options(profile: Profile, checkpoint: F5Checkpoint) -> Values:
    """The sampler options in force; a CFG-free checkpoint takes no guidance, as in synthesis."""
    options = reshaped(profile.setting, profile.setting.options)
    return options if cfg_free_weight(checkpoint.path) is None else options.replace(guidance=0.0)


def _require_translation(profile: Profile) -> None:
    if profile.table is not None and profile.table.temporal != "reuse":
        raise ProfileError(
            "Forecasts cannot be carried into the official package; calibrate a table that reuses, and export that."
        )
    for one in profile.setting.techniques:
        if one.technique not in TRANSLATED:
            raise ProfileError(
                f"{technique(one.technique).title} cannot be carried into the official package; "
                "export a profile without it."
            )
    if profile.table is not None and profile.table.temporal != REUSE:
        raise ProfileError(
            "The strategy table was calibrated with forecasts, which cannot be carried into the official package; "
            "calibrate without them."
        )


def checkpoint_of(profile: Profile, model_folder: str, check: Callable[[], None]) -> F5Checkpoint:
    """The checkpoint that ``profile`` is for. Raises :class:`PlainError` when it is not there, or another one is."""
    chosen = entry(profile.setting.model)
    if chosen.loader != "f5":
        raise ProfileError(
            f"The profile is for {chosen.title}, which is not a model of the f5_tts package; only F5-TTS profiles can "
            "be exported."
        )
    place = Path(model_folder) if model_folder else chosen.folder
    if not place.exists():
        raise ProfileError(
            f"The checkpoint that the profile is for is not in {place}; download it, or give its folder (--folder)."
        )
    checkpoint = read_f5_checkpoint(place, profile.named_variant, check)
    if checkpoint.config.backbone != "DiT":
        raise ProfileError(f"{checkpoint.variant} is no diffusion transformer; only F5-TTS profiles can be exported.")
    found = fingerprint(checkpoint.path, check)
    if found != profile.checkpoint:
        raise ProfileError(
            f"The profile is for the checkpoint {profile.checkpoint[:12]!r}, but {checkpoint.path} is {found[:12]!r}; "
            "give the folder of the right one (--folder)."
        )
    return checkpoint


def _readme(profile: Profile, checkpoint: F5Checkpoint, weights: GuidanceFreeWeights | None) -> str:
    options = _options(profile, checkpoint)
    weight_file = checkpoint.path.name if weights is None else weights.name
    if checkpoint.text_front_end == "phones":
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
        note = "\nThen use `tts.infer(…)` as ever; `paretone_profile.remove(tts.ema_model)` takes it back.\n"
    skipped = (
        "none" if profile.table is None else f"{profile.table.skipped_share:.0%} of the layers' work units skipped"
    )
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
