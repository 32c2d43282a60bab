"""Speech tokens with transformers, from the folder that this file lies in; written by Paretone, Apache-2.0.

``python generate.py --out tokens.json`` continues the first prompt of ``prompts.json``; ``--greedy`` takes the most
likely token every time. With a folder ``assistant``, that model proposes tokens and this one checks them (assisted
generation): greedy tokens are the same as without, and sampled ones have the same distribution.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, LogitsProcessor, LogitsProcessorList

PROMPTS, ASSISTANT, BIAS = "prompts.json", "assistant", "score_bias.safetensors"


class SpokenOnly(LogitsProcessor):
    """Adds the bias to the scores of speech; masks everything else."""

    def __init__(self, vocabulary: dict[str, Any], bias: torch.Tensor | None, device: torch.device) -> None:
        first, codes = vocabulary["first_code"], vocabulary["codes"]
        spoken = torch.tensor([*range(first, first + codes), *vocabulary["stops"]])
        added = torch.full((vocabulary["size"],), -math.inf)
        added[spoken] = torch.zeros(len(spoken)) if bias is None else bias.float()
        self._added = added.to(device)

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """(1, ids) to (1, ids)."""
        return scores.float() + self._added


class RepetitionAware(LogitsProcessor):
    """Distribution of CosyVoice 2's sampling in closed form: of the ``top_k`` most likely tokens those within
    ``top_p``; a token among the last ``window`` is redrawn from all tokens, in the variant "2026" from all others."""

    def __init__(self, prompt: int, repeats: str, top_p: float, top_k: int, window: int = 10) -> None:
        """``prompt`` is the length of the prompt, whose tokens do not count as repeated."""
        self._prompt, self._repeats, self._top_p, self._top_k, self._window = prompt, repeats, top_p, top_k, window

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """(1, ids) to log probabilities (1, ids)."""
        whole = scores.float().softmax(-1)
        likeliest, ids = whole.topk(min(self._top_k, whole.shape[-1]), dim=-1)
        before = likeliest.cumsum(-1) - likeliest
        shares = torch.where(before < self._top_p, likeliest, torch.zeros_like(likeliest))
        nucleus = torch.zeros_like(whole).scatter_(-1, ids, shares / shares.sum(-1, keepdim=True))
        drawn = nucleus.clone()
        for token in set(input_ids[0, self._prompt :][-self._window :].tolist()):
            share = nucleus[0, token].item()
            others = whole.clone()
            if self._repeats != "2025":
                others[0, token] = 0
            if share and others.sum() > 0:  # A certain token has no replacement.
                drawn[0, token] -= share
                drawn += share * others / others.sum()
        return drawn.clamp(min=0).log()


def load(
    folder: str | Path, dtype: torch.dtype = torch.float32, device: str = "cpu", prompts: str = ""
) -> tuple[Any, Any, dict]:
    """Load the model, its assistant or ``None``, and the content of ``prompts.json``, or of another file
    ``prompts``."""
    root = Path(folder)
    content = json.loads(Path(prompts or root / PROMPTS).read_text(encoding="utf-8"))
    model = AutoModelForCausalLM.from_pretrained(root, dtype=dtype).to(device).eval()
    assistant = None
    if (root / ASSISTANT).is_dir():
        assistant = AutoModelForCausalLM.from_pretrained(root / ASSISTANT, dtype=dtype).to(device).eval()
    bias = root / BIAS
    content["bias"] = load_file(bias)["bias"] if bias.is_file() else None
    return model, assistant, content


@torch.inference_mode()
def generate(
    model: Any, assistant: Any, content: dict, index: int = 0, greedy: bool = False, seed: int = 0, **more: Any
) -> list[int]:
    """Generate speech tokens, counted from 0, that continue prompt ``index``. ``more`` is passed to transformers'
    ``generate``."""
    prompt, vocabulary, sampling = content["prompts"][index], content["vocabulary"], content["sampling"]
    torch.manual_seed(seed)
    ids = torch.tensor([prompt["ids"]], device=model.device)
    processors = LogitsProcessorList([SpokenOnly(vocabulary, content["bias"], model.device)])
    if "repeats" in sampling and not greedy:
        processors.append(RepetitionAware(ids.shape[1], sampling["repeats"], sampling["top_p"], sampling["top_k"]))
    if prompt["positions"] is not None:
        more["position_ids"] = torch.tensor([prompt["positions"]], device=model.device)
    if greedy:
        more |= {"do_sample": False, "temperature": None, "top_k": None, "top_p": None, "repetition_penalty": 1.0}
    found = model.generate(
        ids,
        attention_mask=torch.ones_like(ids),
        assistant_model=assistant,
        logits_processor=processors,
        min_new_tokens=prompt["minimum"],
        max_new_tokens=prompt["maximum"],
        **more,
    )
    new = found[0, ids.shape[1] :].tolist()
    return [token - vocabulary["first_code"] for token in new if token not in vocabulary["stops"]]


def main() -> None:
    parser = argparse.ArgumentParser(description="Speech tokens with transformers.")
    parser.add_argument("--prompts", default="", metavar="FILE", help="another prompts.json than the folder's")
    parser.add_argument("--prompt", type=int, default=0, help="number of the prompt in it, from 0")
    parser.add_argument("--greedy", action="store_true", help="the most likely token every time")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--alone", action="store_true", help="without the assistant")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dtype", default="float32", choices=["float32", "bfloat16", "float16"])
    parser.add_argument("--out", default="tokens.json", help="file to write")
    given = parser.parse_args()
    model, assistant, content = load(Path(__file__).parent, getattr(torch, given.dtype), given.device, given.prompts)
    if not 0 <= given.prompt < len(content["prompts"]):
        parser.error(f"--prompt must be from 0 to {len(content['prompts']) - 1}")
    began = time.perf_counter()
    helper = None if given.alone else assistant
    tokens = generate(model, helper, content, given.prompt, given.greedy, given.seed)
    seconds = time.perf_counter() - began
    prompt = content["prompts"][given.prompt]
    written = {"text": prompt["text"], "voice": prompt["voice"], "tokens": tokens}
    Path(given.out).write_text(json.dumps(written) + "\n", encoding="utf-8")
    how = "alone" if helper is None else "assisted"
    print(f"{len(tokens)} tokens in {seconds:.2f} s ({how}): {given.out}")


if __name__ == "__main__":
    main()
