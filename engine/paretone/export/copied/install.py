# Copyright 2026 The Paretone authors. Licensed under the Apache License, Version 2.0:
# https://www.apache.org/licenses/LICENSE-2.0
"""Puts the profile of this folder into the official Triton and TensorRT-LLM recipe of F5-TTS, or takes it out again.

    python install.py path/to/F5-TTS/src/f5_tts/runtime/triton_trtllm [--remove]

Two lines of the recipe change: which class its model imports, and that an engine may be built for one request without
guidance. The engine has to be built after that (stage 1 of the recipe's run.sh).
"""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
MODEL = Path("model_repo_f5_tts/f5_tts/1")
FILES = ("paretone_sampler.py", "f5_triton.json")
CHANGES = (
    (MODEL / "model.py", "from f5_tts_trtllm import F5TTS\n", "from paretone_sampler import F5TTS\n"),
    (
        Path("patch/f5tts/model.py"),
        "batch_size_range = [2, 2, max_batch_size]\n",
        "batch_size_range = [1, 2, max_batch_size]\n",
    ),
)
"""Files of the recipe, and a line of each: before and after the change."""


def install(recipe: Path, remove: bool = False) -> None:
    """Change the recipe, or restore it with ``remove``. Raises :class:`OSError`, and :class:`ValueError` for a recipe
    of another version, before any change."""
    texts = {}
    for name, before, after in CHANGES:
        text = (recipe / name).read_text(encoding="utf-8")
        wanted, other = (before, after) if remove else (after, before)
        if text.count(wanted) != 1 and text.count(other) != 1:
            raise ValueError(
                f"{recipe / name} has no line {before.strip()!r}: this is another version of the recipe than that of "
                "f5-tts 1.1.20"
            )
        texts[recipe / name] = text.replace(other, wanted)
    for name in FILES:
        if remove:
            (recipe / MODEL / name).unlink(missing_ok=True)
        else:
            shutil.copyfile(HERE / name, recipe / MODEL / name)
    for path, text in texts.items():
        path.write_text(text, encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recipe", type=Path, help="folder triton_trtllm of the recipe")
    parser.add_argument("--remove", action="store_true", help="give the recipe its own sampler back")
    given = parser.parse_args()
    try:
        install(given.recipe, given.remove)
    except (OSError, ValueError) as error:
        print(f"The recipe was not changed: {error}.", file=sys.stderr)
        return 1
    print(f"{'Removed from' if given.remove else 'Installed into'} {given.recipe}.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
