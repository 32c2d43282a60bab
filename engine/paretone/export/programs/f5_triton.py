"""A profile as a folder for the official Triton and TensorRT-LLM recipe of F5-TTS, with a sampler that replaces the
recipe's hard-coded steps, sway and guidance. Torch-free until it is written.

Source: ``src/f5_tts/runtime/triton_trtllm`` of SWivid/F5-TTS 1.1.20 (``f5_tts_trtllm.py``, ``patch/f5tts/model.py``,
``scripts/convert_checkpoint.py``, ``run.sh``).
"""

from __future__ import annotations

from paretone.export.accounts import F5_WEIGHTS, GUIDED_STEPS, OPTIONS, SEED, TIMES, OptionLedger
from paretone.export.delivery import Content
from paretone.export.f5_models import read_checkpoint, weights_of, why_not_f5
from paretone.export.targets import Order, Target, block, copied, described, json_file
from paretone.models.catalogue import entry
from paretone.models.f5.config import VARIANTS
from paretone.setting.profile import Profile

KIND, SCHEMA, FILE = "paretone profile for f5-triton", 1, "f5_triton.json"
"""As in the copied module."""
TRANSFORMERS = tuple(name for name, one in VARIANTS.items() if one.backbone == "DiT")
"""Architectures that the recipe converts."""
NOT_RUN = (
    "The sampler is compared with Paretone's in torch, within the recipe's own class, with a network of torch in place "
    "of the TensorRT engine. TensorRT-LLM and Triton themselves were never run."
)


def why_not(profile: Profile, guided_weights: bool) -> str:
    if reason := why_not_f5(profile, guided_weights, "the recipe"):
        return reason
    if profile.variant not in TRANSFORMERS:
        title = entry(profile.setting.model).title
        return f"The recipe converts {', '.join(TRANSFORMERS)} only, and reads characters; {title} is none of them."
    return ""


def options(ledger: OptionLedger) -> None:
    ledger.honour("paretone_sampler.py", "steps", "spacing", "sway", "guidance", "solver")
    if "times" in ledger.given:
        ledger.drop("the placed times take its place", "spacing", "sway")
    ledger.honour("paretone_sampler.py draws every request's noise from it, as the official package does", SEED)
    ledger.drop("the recipe estimates durations from the texts", "speed")
    ledger.drop("the recipe speaks a text in one piece", "cross_fade", "quick_start")


def contents(order: Order) -> dict[str, Content]:
    """Files of the folder, including weights of the profile that replace the checkpoint's."""
    from paretone.sampling.flow import sampling_grid

    values, profile = order.account.options, order.profile
    weights = None
    if order.account.weights:
        order.follower.status("Reading the checkpoint")
        weights = weights_of(profile, read_checkpoint(order), order.follower.check)
    description = {
        "kind": KIND,
        "schema": SCHEMA,
        "variant": profile.variant,
        "checkpoint": profile.checkpoint,
        "solver": values["solver"],
        "times": order.account.given.get("times")
        or sampling_grid(values["steps"], values["spacing"], values["sway"]).tolist(),
        "guidance": values["guidance"],
        "guided_steps": order.account.given.get("guided_steps"),
        "seed": profile.setting.seed,
    }
    usage = _usage(profile.variant, weights.name if weights is not None else "")
    return {
        FILE: json_file(description),
        "paretone_sampler.py": copied("paretone_sampler"),
        "install.py": copied("install"),
        **described("the Triton and TensorRT-LLM recipe of F5-TTS", order, [usage], NOT_RUN),
        **({} if weights is None else weights.contents()),
    }


def _usage(variant: str, weights: str) -> str:
    recipe = "F5-TTS/src/f5_tts/runtime/triton_trtllm"
    own = (
        f"The profile replaces the model's weights. Put `{weights}` and the model's `vocab.txt` into "
        f"`F5-TTS/ckpts/{variant}`, alone, and begin the recipe with stage 1, which converts them.\n\n"
        if weights
        else ""
    )
    return (
        "In the recipe's container, with the source of F5-TTS 1.1.20:\n\n"
        + own
        + block("sh", f"python3 install.py {recipe}\ncd {recipe}\nbash run.sh {1 if weights else 0} 4 {variant}")
        + "\nStage 0 downloads the released weights; if the profile's checkpoint is another, put that into "
        f"`F5-TTS/ckpts/{variant}` in their place, and begin with stage 1. "
        "`python3 install.py … --remove` gives the recipe its own sampler back. To have every request sound "
        f"different, set `seed` to `null` in the recipe's copy of `{FILE}`.\n\n"
        "The server has Triton's protocol, not `/v1/audio/speech`, so `paretone load` cannot measure it; the recipe's "
        "own `client_grpc.py` does.\n"
    )


TARGET = Target(
    "f5-triton",
    "F5-TTS on Triton and TensorRT-LLM",
    "a sampler for the official recipe, which reads the profile, and what puts it there",
    "the recipe",
    why_not,
    options,
    contents,
    frozenset({OPTIONS, F5_WEIGHTS, TIMES, GUIDED_STEPS}),
    reads=False,
)
