"""``python -m tests.tools.natural_decoder --export FOLDER``: hibari's decoder as a resource.

Takes the weights out of the wheel of ``hibari-tts``, as the whole numbers that they are there, and finds the principal
components of the fourth block's output over our own sentences, which the teacher speaks. Copies the wheel's
licence and notice.
"""

import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save
from torch import Tensor

from paretone.errors import PlainError
from paretone.files import write_atomically
from paretone.models.minis.natural_decoder import BLOCKS, COMPONENTS, SCALE, WEIGHT_FILE, LatentSpace, NaturalDecoder
from paretone.training.natural_teacher import MISSING, NaturalTeacher
from paretone.training.sentences import corpus_sentences
from tests.tools.exporting import run, write_licence

SENTENCES, SEED = 600, 11
"""How many are spoken for the components, and their seed."""
BLOCKS_BEFORE = 4
"""Blocks of the original decoder before the latent."""


def decoder_weights() -> dict[str, Tensor]:
    """The weights of :class:`paretone.models.minis.natural_decoder.SpectralNetwork` under its names, matrices as int8
    with their scales. Raises :class:`PlainError` when hibari-tts is not installed."""
    try:
        import hibari
        import onnx
    except ImportError:
        raise PlainError(MISSING) from None
    graph = onnx.load(Path(hibari.__file__).parent / "assets" / "hibari.onnx").graph
    found = {one.name: torch.from_numpy(onnx.numpy_helper.to_array(one).copy()) for one in graph.initializer}
    weights = {f"norm.{end}": found[f"m.dec_norm.{end}"] for end in ("weight", "bias")}
    weights |= _matrix(found, "/head", "head.weight") | {"head.bias": found["m.head.bias"]}
    for number in range(BLOCKS):
        ours, theirs = f"blocks.{number}", f"dec.{BLOCKS_BEFORE + number}"
        weights[f"{ours}.gamma"] = found[f"m.{theirs}.gamma"]
        for our_part, part in (("dwconv", "dw"), ("norm", "norm")):
            weights |= {f"{ours}.{our_part}.{end}": found[f"m.{theirs}.{part}.{end}"] for end in ("weight", "bias")}
        for our_part, part in (("pwconv1", "pw1"), ("pwconv2", "pw2")):
            weights |= _matrix(found, f"/{theirs}/{part}", f"{ours}.{our_part}.weight")
            weights[f"{ours}.{our_part}.bias"] = found[f"m.{theirs}.{part}.bias"]
    return {f"network.{name}": value.contiguous() for name, value in weights.items()}


def _matrix(found: Mapping[str, Tensor], theirs: str, ours: str) -> dict[str, Tensor]:
    if found[f"{theirs}/Transpose_output_0_zero_point"]:
        raise PlainError(f"The matrix {theirs} of this hibari-tts is not symmetric; install hibari-tts 0.2.1.")
    matrix, scale = (found[f"{theirs}/Transpose_output_0_{end}"] for end in ("quantized", "scale"))
    return {ours: matrix.T, ours + SCALE: scale.reshape(1)}


def latent_space(teacher: NaturalTeacher, sentences: int = SENTENCES) -> dict[str, Tensor]:
    """The buffers of a :class:`LatentSpace` over the speech of ``teacher``, edges of sentences included."""
    frames = []
    for text in corpus_sentences(sentences, SEED):
        for sentence in teacher.phonemes(text):
            frames.append(teacher.hidden(teacher.conditions(sentence)))
    every = np.concatenate(frames).astype(np.float64)
    variances, directions = np.linalg.eigh(np.cov(every.T))
    space = LatentSpace()
    space.mean.copy_(torch.from_numpy(every.mean(0)))
    space.directions.copy_(torch.from_numpy(directions.T[::-1][:COMPONENTS].copy()))
    space.deviations.copy_(torch.from_numpy(np.sqrt(variances[::-1][:COMPONENTS])))
    return {f"space.{name}": value for name, value in space.state_dict().items()}


def export(folder: Path, sentences: int = SENTENCES) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    teacher = NaturalTeacher(NaturalDecoder())
    weights = decoder_weights() | latent_space(teacher, sentences)
    write_atomically(folder / WEIGHT_FILE, save(weights, {"format": "pt", "source": "hibari-tts 0.2.1"}))
    write_licence(folder)


def main(arguments: list[str] | None = None) -> int:
    return run("tests.tools.natural_decoder", __doc__, export, arguments)


if __name__ == "__main__":
    sys.exit(main())
