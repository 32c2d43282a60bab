"""A speech language model for vLLM: folder, draft, serving command, requests. Torch-free until files are made.

Flags: https://docs.vllm.ai/en/latest/features/speculative_decoding/draft_model/ ; fields of requests:
https://docs.vllm.ai/en/latest/api/vllm/entrypoints/openai/completion/protocol/ (both as of vLLM 0.26). A draft must
have as many ids as the model (``verify_equal_vocab_size_if_draft_model`` of ``vllm/config/speculative.py``): it has.
``logit_bias`` is ignored while a draft proposes (``build_logitsprocs`` of ``vllm/v1/sample/logits_processor``), so
CosyVoice 2, whose scores have a bias, is served without a draft.
"""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING, Any

from paretone.errors import ProfileError
from paretone.export.accounts import DRAFT, FEWER_LAYERS, OPTIONS, OptionLedger
from paretone.export.delivery import Content
from paretone.export.language_targets import (
    common_files,
    drafts,
    is_repetition_aware,
    prompt_and_decoder,
    why_not_counted,
)
from paretone.export.targets import SAMPLING, Order, Target, sampling_of
from paretone.models.catalogue import entry
from paretone.setting.profile import Profile

if TYPE_CHECKING:
    from paretone.export.language_bundle import LanguageBundle

MODEL, DRAFT_FOLDER, COMMAND = "model", "draft", "serve.sh"
CONTEXT = 2048
"""Smallest served length of prompt and speech together (tokens)."""
LARGEST_BIAS = 100.0
"""vLLM's limit for values of ``logit_bias``, as in OpenAI's interface."""


def why_not(profile: Profile, guided_weights: bool) -> str:
    if reason := why_not_counted(profile, guided_weights, "vLLM"):
        return reason
    model = entry(profile.setting.model)
    if model.exports and model.exports.biased and drafts(profile):
        return (
            f"The scores of {model.title} have a bias, which vLLM takes as logit_bias and ignores while a draft "
            "proposes tokens; export a profile without the draft."
        )
    return ""


def options(ledger: OptionLedger) -> None:
    ledger.honour("in the requests", *SAMPLING)
    if is_repetition_aware(ledger.options):
        ledger.drop("vLLM does not resample repeated tokens", "repeats")
    prompt_and_decoder(ledger)
    ledger.honour("in the requests; vLLM draws other numbers from it", "seed")


def contents(order: Order) -> dict[str, Content]:
    from paretone.export.language_bundle import language_bundle, model_folder

    drafted = order.account.given.get("draft")
    bundle = language_bundle(order)
    stops = {"eos_token_id": list(bundle.model.ids.stops), "pad_token_id": bundle.model.ids.stops[0]}
    parts = {MODEL: bundle.model} | ({} if bundle.draft is None else {DRAFT_FOLDER: bundle.draft})
    found: dict[str, Content] = {}
    for folder, model in parts.items():
        files = {**model_folder(model, stops), **bundle.tokenizer}
        found |= {f"{folder}/{name}": content for name, content in files.items()}
    name = entry(order.profile.setting.model).id
    command = serving(bundle, drafted["length"] if drafted else 0, order.profile)
    found[COMMAND] = f"#!/bin/sh\n# Run in this folder.\n{command}\n".encode()
    found |= {
        f"requests/{number}.json": (json.dumps(one) + "\n").encode()
        for number, one in enumerate(requests(bundle, order))
    }
    use = (
        f"```\npip install vllm\n{command}\n```\n\nIn another terminal, from this folder:\n\n"
        "```\ncurl -s http://localhost:8000/v1/completions -H 'Content-Type: application/json' -d @requests/0.json\n"
        "```\n\n"
        "`choices[0].token_ids` of the answer are the new ids. Requests allow only ids that can be spoken. Written for "
        "the flags and requests of vLLM 0.26, and not run there by Paretone, whose tests load the folders with "
        "transformers. bfloat16 rounds: greedy tokens can differ from Paretone's in float32.\n\n"
        "The server answers with tokens, not with sound, so `paretone load` cannot measure it; vLLM's client does:\n\n"
        f"```\nvllm bench serve --model {name} --tokenizer ./{MODEL} --dataset-name random --num-prompts 100\n```"
    )
    return found | common_files(order, "vLLM", use, bundle)


def serving(bundle: LanguageBundle, length: int, profile: Profile) -> str:
    """Command of the server, with the draft, if any, proposing ``length`` tokens at a time."""
    name = entry(profile.setting.model).id
    longest = max(CONTEXT, *(len(one.ids) + one.maximum for one in bundle.prompts))
    arguments = ["vllm", "serve", f"./{MODEL}", "--served-model-name", name, "--dtype", "bfloat16"]
    arguments += ["--max-model-len", str(longest)]
    if bundle.draft is not None:
        drafted = {"model": f"./{DRAFT_FOLDER}", "num_speculative_tokens": length, "method": "draft_model"}
        arguments += ["--speculative-config", json.dumps(drafted)]
    return shlex.join(arguments)


def requests(bundle: LanguageBundle, order: Order) -> list[dict[str, Any]]:
    """Requests, one per passage. Raises :class:`ProfileError` for a bias that vLLM would clamp."""
    account, ids = order.account, bundle.model.ids
    sampling = sampling_of(account.options)
    sampling.pop("repeats", None)
    common: dict[str, Any] = {
        "model": entry(order.profile.setting.model).id,
        **sampling,
        "seed": order.profile.setting.seed,
        "stop_token_ids": list(ids.stops),
        "allowed_token_ids": list(ids.spoken),
        "return_token_ids": True,
    }
    bias = bundle.model.bias
    if bias is not None:
        if bias.abs().max() > LARGEST_BIAS:
            raise ProfileError(
                f"The scores of this model have a bias of up to {float(bias.abs().max()):.0f}, but vLLM takes "
                f"{LARGEST_BIAS:.0f} at most; export for transformers."
            )
        common["logit_bias"] = {str(one): value for one, value in zip(ids.spoken, bias.tolist(), strict=True)}
    return [
        {"prompt": list(one.ids), "min_tokens": one.minimum, "max_tokens": one.maximum, **common}
        for one in bundle.prompts
    ]


TARGET = Target(
    "vllm",
    "vLLM",
    "a speech language model, its draft, the command that serves both, and requests",
    "vLLM",
    why_not,
    options,
    contents,
    frozenset({OPTIONS, FEWER_LAYERS, DRAFT}),
)
