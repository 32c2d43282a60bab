"""Read texts with NeMo text processing, in its environment: JSON list on standard input, JSON list on standard output.

Its grammars are compiled in half a minute and kept in the folder given."""

import json
import sys
from contextlib import redirect_stdout
from importlib import import_module


def main(folder: str) -> None:
    with redirect_stdout(sys.stderr):
        normalize = import_module("nemo_text_processing.text_normalization.normalize")
        reader = normalize.Normalizer(input_case="cased", lang="en", cache_dir=folder)
        said = [reader.normalize(text, punct_post_process=False) for text in json.load(sys.stdin)]
    print(json.dumps(said))


if __name__ == "__main__":
    main(sys.argv[1])
