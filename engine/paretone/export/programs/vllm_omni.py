"""A profile as a folder for vLLM-Omni: the server's command with its cache, and the fields of requests. Torch-free.

Sources (vllm-project/vllm-omni, autumn 2026): ``docs/user_guide/diffusion/cache_acceleration/cache_dit.md`` for
``--cache-backend`` and ``--cache-config``; ``vllm_omni/diffusion/cache/cachedit/config.py`` for the fields passed to
cache-dit; for F5-TTS the open pull request 7153 (``vllm_omni/diffusion/models/f5_tts/pipeline_f5_tts.py`` and its
client for ``/v1/audio/speech``); for OmniVoice ``pipeline_omnivoice.py``, which reads its settings from the model's
``config.json``, and its client, which sends the seed in ``extra_params``.
"""

from __future__ import annotations

from paretone.export.accounts import CACHE_DIT, OPTIONS, SEED, OptionLedger
from paretone.export.delivery import Content
from paretone.export.f5_models import own_grid
from paretone.export.programs.omnivoice import ARGUMENTS
from paretone.export.targets import Order, Target, block, copied, described, json_file
from paretone.models.catalogue import entry, models
from paretone.models.omnivoice.config import LAYOUT as OMNIVOICE
from paretone.sampling.guidance import SMALLEST_GUIDANCE
from paretone.setting.profile import Profile
from paretone.wording import listed

NAME = "vllm-omni"
CACHE_FIELDS = (
    "Fn_compute_blocks Bn_compute_blocks residual_diff_threshold max_warmup_steps max_cached_steps "
    "max_continuous_cached_steps taylorseer_order"
).split()
"""Fields that vLLM-Omni passes on to cache-dit."""
GENERATION = {
    name: ARGUMENTS[name]
    for name in ("steps", "guidance", "shift", "layer_penalty", "position_temperature", "class_temperature")
}
"""OmniVoice's settings in ``config.json``, by our options."""
UNGUIDED = SMALLEST_GUIDANCE / 10
"""vLLM-Omni treats a guidance of 0 as unset and uses 2; below 1e-5 it runs one branch."""
NOT_RUN = (
    "These files were made from vLLM-Omni's own documentation and code, and never run in it: no machine of Paretone's "
    "has had a graphics card with it."
)


def why_not(profile: Profile, guided_weights: bool) -> str:
    """Accept only released models with the released weights."""
    model = entry(profile.setting.model)
    if guided_weights:
        return "The profile's checkpoint has its guidance in its weights; vLLM-Omni downloads the released weights."
    if NAME in model.programs:
        return ""
    known = listed(one.title for one in models() if NAME in one.programs)
    return f"The profile is for {model.title}; of Paretone's models, vLLM-Omni's diffusion engine serves {known}."


def options(ledger: OptionLedger) -> None:
    """Request fields for F5-TTS, fields of the model's configuration for OmniVoice."""
    if ledger.model.layout == OMNIVOICE:
        for name, field in GENERATION.items():
            ledger.honour(f"{field} in config.json, which model_folder.py writes", name)
        ledger.honour("extra_params.seed of the request (it draws other noise from it)", SEED)
        ledger.honour("language of the request", "language")
        ledger.honour("instructions of the request", "instruct")
        ledger.honour("ref_audio and ref_text of the request, or none", "clone")
        ledger.drop("the request has no such field", "speed", "duration", "denoise", "prepare", "post_process")
        ledger.drop("it speaks the request's text as it comes", "by_sentence")
        return
    ledger.honour("num_inference_steps of the request", "steps")
    ledger.honour("guidance_scale of the request", "guidance")
    ledger.honour("seed of the request (it draws other noise from it)", SEED)
    own_grid(ledger)
    ledger.drop("the request's speed changes the finished sound", "speed")


def contents(order: Order) -> dict[str, Content]:
    model = entry(order.profile.setting.model)
    if model.layout == OMNIVOICE:
        return _omnivoice(order)
    values = order.account.options
    cache = order.account.given.get("cache_dit")
    name = model.programs[NAME]
    request = {
        "model": name,
        "num_inference_steps": values["steps"],
        "guidance_scale": values["guidance"] or UNGUIDED,
        "seed": order.profile.setting.seed,
        "response_format": "wav",
    }
    files: dict[str, Content] = {"request.json": json_file(request)}
    flags = ""
    if cache is not None:
        files["cache_config.json"] = json_file(cache)
        flags = ' \\\n  --cache-backend cache_dit --cache-config "$(cat "$here/cache_config.json")"'
    files["serve.sh"] = _script(
        f'exec vllm serve {name} --omni --trust-remote-code --enforce-eager --port "${{PORT:-8091}}"{flags}'
    )
    parts = [
        "Needs a vLLM-Omni with F5-TTS: pull request 7153 of vllm-project/vllm-omni, open in autumn 2026.\n",
        _usage("sh serve.sh"),
    ]
    return _whole(order, files, parts)


def _omnivoice(order: Order) -> dict[str, Content]:
    values = order.account.options
    request: dict[str, object] = {
        "model": "k2-fsa/OmniVoice",
        "response_format": "wav",
        "extra_params": {"seed": order.profile.setting.seed},
    }
    request |= {
        field: values[name] for name, field in (("language", "language"), ("instruct", "instructions")) if values[name]
    }
    files: dict[str, Content] = {
        "request.json": json_file(request),
        "generation.json": json_file({field: values[name] for name, field in GENERATION.items()}),
        "model_folder.py": copied("model_folder"),
        "serve.sh": _script('exec vllm serve "$1" --omni --trust-remote-code --port "${PORT:-8091}"'),
    }
    made = "python model_folder.py path/to/the/release omnivoice-with-profile\nsh serve.sh omnivoice-with-profile"
    return _whole(order, files, [_usage(made)])


def _whole(order: Order, files: dict[str, Content], parts: list[str]) -> dict[str, Content]:
    files["speech_request.py"] = copied("speech_request")
    return files | described("vLLM-Omni", order, parts, NOT_RUN)


def _script(command: str) -> bytes:
    return f'#!/bin/sh\nhere=$(cd "$(dirname "$0")" && pwd)\n{command}\n'.encode()


def _usage(serve: str) -> str:
    ask = 'python speech_request.py "A text." --voice reference.wav --transcript "What is said in it." --out out.wav'
    return (
        "Start the server:\n\n"
        + block("sh", serve)
        + "\nHave it speak, in the voice of a recording:\n\n"
        + block("sh", ask)
        + "\n`request.json` holds the fields that every request needs; other clients add them to theirs.\n\n"
        "Measure it under load, with Paretone (`paretone[serve]`):\n\n"
        + block(
            "sh",
            "paretone load http://localhost:8091 --request request.json --reference reference.wav "
            '--transcript "What is said in it." --clients 1 4 8',
        )
    )


TARGET = Target(
    NAME,
    "vLLM-Omni",
    "the server's command with its cache, and a client with the request's fields",
    "vLLM-Omni",
    why_not,
    options,
    contents,
    frozenset({OPTIONS, CACHE_DIT, *CACHE_FIELDS}),
    reads=False,
)
