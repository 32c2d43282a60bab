"""``python -m engine.training.recipes.manifest``: write the corpus of the bundled models as a manifest.

For the trainings of ``paretone train`` that read recordings.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from engine.errors import PlainError
from engine.training.corpora import SENTENCES, flite_corpus
from engine.training.manifest import write_clips


def main(arguments: list[str] | None = None) -> int:
    """Write it; returns the exit code."""
    options = _parser().parse_args(arguments)
    try:
        corpus = flite_corpus(options.corpus, options.sentences, _tell)
        options.manifest.parent.mkdir(parents=True, exist_ok=True)
        write_clips(options.manifest, corpus.training, corpus.held_out)
    except PlainError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    print(f"Wrote {len(corpus.training)} clips to train and {len(corpus.held_out)} to validate on: {options.manifest}")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m engine.training.recipes.manifest", description=__doc__)
    parser.add_argument("--manifest", type=Path, required=True, help="CSV file to write; recordings go next to it")
    parser.add_argument("--corpus", type=Path, required=True, help="folder of the corpus; what is missing is spoken")
    parser.add_argument(
        "--sentences", type=int, default=SENTENCES, help="sentences a voice to train on (default: %(default)s)"
    )
    return parser


def _tell(done: int, total: int) -> None:
    print(f"corpus: {done} of {total} clips", flush=True)


if __name__ == "__main__":
    sys.exit(main())
