"""A profile as a folder for SGLang Diffusion: cache-dit's YAML, the command, and fields of requests. Torch-free.

Sources (sgl-project/sglang, 2026): ``docs/diffusion/performance/cache/cache_dit.md`` for ``--cache-dit-config``, which
is read by ``cache_dit.load_configs``, and for the variables of SGLang's pipelines; ``docs/diffusion/api/cli.md``.
"""

from __future__ import annotations

from functools import partial

import yaml

from paretone.export.accounts import CACHE_DIT, OPTIONS, SEED, OptionLedger
from paretone.export.delivery import Content
from paretone.export.f5_models import why_not_f5
from paretone.export.targets import Order, Target, block, described, json_file

CACHE_FIELDS = (
    "Fn_compute_blocks Bn_compute_blocks residual_diff_threshold max_warmup_steps warmup_interval max_cached_steps "
    "max_continuous_cached_steps max_accumulated_residual_diff_threshold steps_computation_mask "
    "steps_computation_policy taylorseer_order"
).split()
"""All fields: the file is passed to cache-dit unchanged."""
VARIABLES = {
    "Fn_compute_blocks": "FN",
    "Bn_compute_blocks": "BN",
    "max_warmup_steps": "WARMUP",
    "residual_diff_threshold": "RDT",
    "max_continuous_cached_steps": "MC",
    "enable_taylorseer": "TAYLORSEER",
    "taylorseer_order": "TS_ORDER",
}
"""Variables of SGLang's pipelines, after ``SGLANG_CACHE_DIT_``."""
NOT_RUN = (
    "SGLang has no F5-TTS as far as its documentation of 2026 says: `serve.sh` needs a pipeline of diffusers for the "
    "model, which you bring, and whose transformer cache-dit knows. `cache_dit.yaml` is read by the real "
    "`cache_dit.load_configs` (1.5.3) in Paretone's tests; SGLang itself was never run with it."
)


def options(ledger: OptionLedger) -> None:
    """Fields of requests; the grid is the pipeline's."""
    ledger.honour("num_inference_steps of the request", "steps")
    ledger.honour("guidance_scale of the request", "guidance")
    ledger.honour("seed of the request (it draws other noise from it)", SEED)
    ledger.drop("the pipeline has its own", "spacing", "sway", "solver", "speed", "cross_fade", "quick_start")


def contents(order: Order) -> dict[str, Content]:
    values, cache = order.account.options, order.account.given.get("cache_dit")
    request = {
        "num_inference_steps": values["steps"],
        "guidance_scale": values["guidance"],
        "seed": order.profile.setting.seed,
    }
    command = 'exec sglang serve --backend diffusers --trust-remote-code --model-path "$1" --port "${PORT:-30010}"'
    parts = []
    files: dict[str, Content] = {"request.json": json_file(request)}
    if cache is not None:
        files["cache_dit.yaml"] = yaml.safe_dump({"cache_config": dict(cache)}, sort_keys=False).encode()
        command += ' \\\n  --cache-dit-config "$here/cache_dit.yaml"'
        parts.append(_variables(cache))
    files["serve.sh"] = f'#!/bin/sh\nhere=$(cd "$(dirname "$0")" && pwd)\n{command}\n'.encode()
    usage = (
        "Start the server with a pipeline of the model:\n\n"
        + block("sh", "sh serve.sh path/to/the/pipeline")
        + "\n`request.json` holds the fields that every request needs.\n\n"
        "Measure it under load, with Paretone (`paretone[serve]`), if the pipeline answers `/v1/audio/speech`:\n\n"
        + block("sh", "paretone load http://localhost:30010 --request request.json --clients 1 4 8")
    )
    return files | described("SGLang Diffusion", order, [usage, *parts], NOT_RUN)


def _variables(cache: dict[str, object]) -> str:
    """Section on the cache for SGLang's own pipelines, which read variables instead of the file."""
    given = [
        f"SGLANG_CACHE_DIT_{name}={str(cache[field]).lower()}" for field, name in VARIABLES.items() if field in cache
    ]
    left = [field for field in cache if field not in VARIABLES and cache[field] != -1]
    return (
        "Pipelines of SGLang's own take the cache from the environment in place of the file:\n\n"
        + block("sh", " \\\n".join(["SGLANG_CACHE_DIT_ENABLED=true", *given, "sglang serve --model-path MODEL"]))
        + (f"\nThese variables leave out {', '.join(left)}.\n" if left else "")
    )


TARGET = Target(
    "sglang",
    "SGLang Diffusion",
    "cache-dit's configuration, the server's command, and the request's fields",
    "SGLang",
    partial(why_not_f5, package="a diffusion server"),
    options,
    contents,
    frozenset({OPTIONS, CACHE_DIT, *CACHE_FIELDS}),
    reads=False,
)
