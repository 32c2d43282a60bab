# Copyright 2026 The Paretone authors. Licensed under the Apache License, Version 2.0:
# https://www.apache.org/licenses/LICENSE-2.0
"""Runs a Paretone profile inside the official F5-TTS package: its steps, grid, guidance and strategy table.

    from f5_tts.api import F5TTS
    import paretone_profile

    tts = F5TTS(model="F5TTS_v1_Base", ckpt_file="model_1250000.safetensors")
    paretone_profile.apply(tts.ema_model, "the folder of this file")
    tts.infer(...)                       # now as fast as the profile says
    paretone_profile.remove(tts.ema_model)

The model keeps its weights and its class; only ``sample`` of this one object, and the forward passes of its transformer
and blocks, replace the official ones until :func:`remove`. Arguments for steps, guidance and sway are overridden: a
strategy table is valid on its own grid only. Needs torch and f5-tts (tested with 1.1.20), nothing else.

What a strategy table says of a block at a step (DiTReducio, https://github.com/MM-Speech/DiTReducio):

* ``NONE``: compute;
* ``TS`` (temporal skipping): attention and feed-forward return what they last returned;
* ``BS`` (branch skipping): only the guided half of the batch is computed; the other half follows by the difference that
  the two had when both were last computed. With ``branch_skip`` "attention" the feed-forward computes both.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

FILE = "f5_tts.json"
KIND = "paretone profile for f5-tts"
SCHEMA = 1


class ProfileMismatch(ValueError):
    """The profile cannot be used with this model or this package."""


def apply(model: Any, profile: str | Path | dict[str, Any]) -> None:
    """Make ``model`` (an ``f5_tts.model.CFM``, such as ``F5TTS().ema_model``) sample with ``profile``.

    ``profile`` is the exported folder, its ``f5_tts.json``, or the content of that file. Raises
    :class:`ProfileMismatch` with the reason, leaving the model unchanged.
    """
    profile = read(profile)
    _check_model(model, profile)
    _check_grid(profile)
    sampling, run = profile["sampling"], threading.local()  # The package samples the chunks of a text on many threads.

    def sample(cond: Any, text: Any, duration: Any, **options: Any) -> Any:
        if options.pop("duplicate_test", False):
            raise ProfileMismatch("A profile starts from noise; duplicate_test starts in the middle of its grid.")
        options.update(
            steps=sampling["steps"],
            cfg_strength=sampling["guidance"],
            sway_sampling_coef=sampling["sway"] or None,
            use_epss=sampling["spacing"] == "epss",
        )
        run.now = _Run(profile["table"], len(model.transformer.transformer_blocks))
        try:
            return type(model).sample(model, cond, text, duration, **options)
        finally:
            del run.now

    transformer = model.transformer
    model._paretone_odeint = model.odeint_kwargs
    model.odeint_kwargs = {**model.odeint_kwargs, "method": sampling["solver"]}
    model.sample = sample
    if profile["table"] is not None:
        transformer.forward = _counting(transformer, run)
        for layer, block in enumerate(transformer.transformer_blocks):
            block.forward = _skipping(block, layer, run)


def remove(model: Any) -> None:
    """Restore the official behaviour of ``model``. No-op without a profile."""
    if not is_applied(model):
        return
    model.odeint_kwargs = model.__dict__.pop("_paretone_odeint")
    for module in (model.transformer, *model.transformer.transformer_blocks):
        module.__dict__.pop("forward", None)
    del model.sample


def is_applied(model: Any) -> bool:
    return "_paretone_odeint" in model.__dict__


def read(profile: str | Path | dict[str, Any]) -> dict[str, Any]:
    """Read and check the profile from a folder, a file or its content. Raises :class:`ProfileMismatch`."""
    if not isinstance(profile, dict):
        path = Path(profile)
        path = path / FILE if path.is_dir() else path
        try:
            profile = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError) as error:
            raise ProfileMismatch(f"{path} cannot be read ({error}); export the profile again.") from None
    if not isinstance(profile, dict) or profile.get("kind") != KIND:
        raise ProfileMismatch("This is not a profile for f5-tts; export one with: paretone export --target f5-tts")
    if profile.get("schema") != SCHEMA:
        raise ProfileMismatch(
            f"The profile's schema is {str(profile.get('schema'))[:40]}, but this module reads {SCHEMA}."
        )
    try:
        _check_fields(profile)
    except (LookupError, TypeError) as error:
        raise ProfileMismatch(f"The profile lacks a field, or has another kind of value ({error}).") from None
    return profile


def _check_fields(profile: dict[str, Any]) -> None:
    steps, table = profile["sampling"]["steps"], profile["table"]
    if len(profile["times"]) != steps + 1:
        raise ProfileMismatch(f"The profile's grid has {len(profile['times']) - 1} steps, but its sampling {steps}.")
    if table is not None and any(len(row) != steps for row in table["actions"]):
        raise ProfileMismatch(f"The profile's strategy table belongs to another grid than its {steps} steps.")
    if table is not None and profile["sampling"]["solver"] != "euler":
        raise ProfileMismatch("A strategy table needs the Euler solver.")


def _check_model(model: Any, profile: dict[str, Any]) -> None:
    if is_applied(model):
        raise ProfileMismatch("A profile is applied to this model already; remove it first.")
    blocks = getattr(getattr(model, "transformer", None), "transformer_blocks", None)
    if blocks is None or not hasattr(model, "odeint_kwargs"):
        raise ProfileMismatch("The model is not an F5-TTS of the official package (a CFM around a DiT).")
    if profile["table"] is not None and len(profile["table"]["actions"]) != len(blocks):
        raise ProfileMismatch(
            f"The profile's strategy table has {len(profile['table']['actions'])} layers, the model {len(blocks)}."
        )
    # Versions 0 and 1 of a model have equal tensors and differ only in how they are used.
    transformer = model.transformer
    found = {
        "pe_attn_head": blocks[0].attn.processor.pe_attn_head,
        "text_mask_padding": transformer.text_embed.mask_padding,
    }
    for name, expected in profile["architecture"].items():
        if found[name] != expected:
            raise ProfileMismatch(
                f"The profile is for {profile['variant']}, whose {name} is {expected}; this model's is {found[name]}."
            )
    weights = dict(transformer.state_dict())
    for name, probes in profile["probes"].items():
        weight = weights.get(name)
        for position, value in probes:
            # Rounded like the model's weights, so that a model in half precision is recognised too.
            if (
                weight is None
                or position >= weight.numel()
                or weight.flatten()[position].item() != torch.tensor(value).to(weight.dtype).item()
            ):
                raise ProfileMismatch(
                    f"The profile is for another checkpoint (SHA-256 {profile['checkpoint'][:12]}…): "
                    f"the weight transformer.{name} differs."
                )


def _check_grid(profile: dict) -> None:
    from f5_tts.model.utils import get_epss_timesteps

    sampling = profile["sampling"]
    steps, sway = sampling["steps"], sampling["sway"]
    if sampling["spacing"] == "epss":
        times = get_epss_timesteps(steps, device="cpu", dtype=torch.float32)
    else:
        times = torch.linspace(0, 1, steps + 1)
    times = times + sway * (torch.cos(torch.pi / 2 * times) - 1 + times)
    if not torch.allclose(times, torch.tensor(profile["times"]), rtol=0, atol=1e-6):
        raise ProfileMismatch(
            f"The installed f5-tts spaces {steps} steps otherwise than the profile's grid; use f5-tts 1.1.20."
        )


# --- Skipping ---------------------------------------------------------------------------------------------------------
class _Run:
    """State of one sampling run under a table: the number of the evaluation, and each module's stored outputs."""

    def __init__(self, table: dict | None, layers: int) -> None:
        self.table = table
        self.evaluation = 0
        self.branches = 1
        self.attention: list[dict[str, torch.Tensor]] = [{} for _ in range(layers)]
        self.feed_forward: list[dict[str, torch.Tensor]] = [{} for _ in range(layers)]


def _counting(transformer: Any, run: threading.local) -> Callable[..., Any]:
    """The transformer's forward, which also counts evaluations for its blocks."""

    def forward(*arguments: Any, **options: Any) -> Any:
        now = getattr(run, "now", None)
        if now is not None:
            now.branches = 2 if options.get("cfg_infer") else 1
        output = type(transformer).forward(transformer, *arguments, **options)
        if now is not None:
            now.evaluation += 1
        return output

    return forward


def _skipping(block: Any, layer: int, run: threading.local) -> Callable[..., torch.Tensor]:
    """A block's forward under the table. Outside ``sample`` it is the official one."""

    def forward(x: torch.Tensor, t: torch.Tensor, mask: torch.Tensor | None = None, rope: Any = None) -> torch.Tensor:
        now = getattr(run, "now", None)
        if now is None:
            return type(block).forward(block, x, t, mask=mask, rope=rope)
        row, step = now.table["actions"][layer], now.evaluation
        # Like the official block, but cached before the gate, so that the gate is always that of this step.
        parts = block.attn_norm.linear(block.attn_norm.silu(t)).unsqueeze(1).chunk(6, dim=-1)
        shift, scale, gate, shift_forward, scale_forward, gate_forward = parts

        def attention(rows: int) -> torch.Tensor:
            norm = block.attn_norm.norm(x[:rows]) * (1 + scale[:rows]) + shift[:rows]
            return block.attn(x=norm, mask=None if mask is None else mask[:rows], rope=rope)

        def feed_forward(rows: int) -> torch.Tensor:
            return block.ff(block.ff_norm(x[:rows]) * (1 + scale_forward[:rows]) + shift_forward[:rows])

        x = x + gate * _output(attention, len(x), now.branches, row, step, now.attention[layer])
        if now.table["branch_skip"] == "attention":
            row = ["NONE" if action == "BS" else action for action in row]
        return x + gate_forward * _output(feed_forward, len(x), now.branches, row, step, now.feed_forward[layer])

    return forward


def _output(
    module: Callable[[int], torch.Tensor],
    rows: int,
    branches: int,
    row: list[str],
    step: int,
    memory: dict[str, torch.Tensor],
) -> torch.Tensor:
    """Output of ``module`` for all rows at ``step``: computed, reused, or completed from the first branch."""
    action, later = row[step], row[step + 1 :]
    if action == "TS":
        return memory["output"]
    if action == "BS" and branches == 2:
        first = module(rows // 2)
        output = torch.cat([first, first + memory["residual"]])
    else:
        output = module(rows)
        until = later.index("NONE") if "NONE" in later else len(later)
        if branches == 2 and "BS" in later[:until]:
            first, second = output.chunk(2)
            memory["residual"] = second - first
    if later[:1] == ["TS"]:
        memory["output"] = output
    return output
