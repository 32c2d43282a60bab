"""Speech tokens with llama-cpp-python, from the folder that this file lies in; written by Paretone, Apache-2.0.

``python generate.py --out tokens.json`` continues the first prompt of ``prompts.json``; ``--greedy`` takes the most
likely token every time.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from llama_cpp import Llama, LogitsProcessorList

PROMPTS, MODEL = "prompts.json", "model.gguf"


def load(folder: str | Path, threads: int | None = None, prompts: str = "") -> tuple[Llama, dict[str, Any]]:
    """Load the model and the content of ``prompts.json``, or of another file ``prompts``."""
    root = Path(folder)
    content = json.loads(Path(prompts or root / PROMPTS).read_text(encoding="utf-8"))
    longest = max(len(one["ids"]) + one["maximum"] for one in content["prompts"])
    model = Llama(str(root / MODEL), n_ctx=longest + 1, n_threads=threads, n_batch=longest + 1, verbose=False)
    return model, content


def spoken_only(vocabulary: dict[str, Any], prompt: dict[str, Any]) -> Callable:
    """Logits processor that allows only speech, and its end only after the minimum number of tokens."""
    first, stops = vocabulary["first_code"], vocabulary["stops"]
    closed = np.full(vocabulary["size"], -np.inf, np.float32)
    closed[first : first + vocabulary["codes"]] = 0
    ended = closed.copy()
    ended[stops] = 0

    def process(ids: np.ndarray, scores: np.ndarray) -> np.ndarray:
        early = len(ids) - len(prompt["ids"]) < prompt["minimum"]
        return scores + (closed if early else ended)

    return process


def generate(model: Llama, content: dict[str, Any], index: int = 0, greedy: bool = False, seed: int = 0) -> list[int]:
    """Generate speech tokens, counted from 0, that continue prompt ``index``."""
    prompt, vocabulary, sampling = content["prompts"][index], content["vocabulary"], content["sampling"]
    model.set_seed(seed)
    model.reset()
    found: list[int] = []
    for token in model.generate(
        prompt["ids"],
        temp=0.0 if greedy else sampling.get("temperature", 1.0),
        top_k=sampling.get("top_k", 0),
        top_p=sampling.get("top_p", 1.0),
        min_p=0.0,
        repeat_penalty=1.0 if greedy else sampling.get("repetition_penalty", 1.0),
        logits_processor=LogitsProcessorList([spoken_only(vocabulary, prompt)]),
    ):
        if token in vocabulary["stops"] or len(found) >= prompt["maximum"]:
            break
        found.append(token - vocabulary["first_code"])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description="Speech tokens with llama-cpp-python.")
    parser.add_argument("--prompts", default="", metavar="FILE", help="another prompts.json than the folder's")
    parser.add_argument("--prompt", type=int, default=0, help="number of the prompt in it, from 0")
    parser.add_argument("--greedy", action="store_true", help="the most likely token every time")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", default="tokens.json", help="file to write")
    given = parser.parse_args()
    model, content = load(Path(__file__).parent, prompts=given.prompts)
    if not 0 <= given.prompt < len(content["prompts"]):
        parser.error(f"--prompt must be from 0 to {len(content['prompts']) - 1}")
    began = time.perf_counter()
    tokens = generate(model, content, given.prompt, given.greedy, given.seed)
    seconds = time.perf_counter() - began
    prompt = content["prompts"][given.prompt]
    written = {"text": prompt["text"], "voice": prompt["voice"], "tokens": tokens}
    Path(given.out).write_text(json.dumps(written) + "\n", encoding="utf-8")
    print(f"{len(tokens)} tokens in {seconds:.2f} s: {given.out}")


if __name__ == "__main__":
    main()
