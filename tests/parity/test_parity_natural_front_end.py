"""Our text front end of natural speech against the teacher's: the recorded phonemes, the networks, and the files."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load

from paretone.front_end import lengths, lexicon, tagger, unknown_words
from paretone.front_end.lengths import default_lengths
from paretone.front_end.lexicon import bundled
from paretone.front_end.phones import EDGE
from paretone.front_end.unknown_words import default_unknown_words
from paretone.models.files.checkpoints import read_weights
from tests.engine.front_end.references import references

hibari = pytest.importorskip("hibari")
onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")

LENGTHS = "/Clip_output_0"


@pytest.fixture(scope="module")
def teacher() -> object:
    return hibari.Hibari()


def test_the_record_is_what_the_teacher_reads(teacher: hibari.Hibari) -> None:
    assert [one.text for one in references() if " ".join(teacher.phonemize(one.text)) != one.teacher] == []


def test_unknown_words_are_read_alike(teacher: hibari.Hibari) -> None:
    words = {word for one in references() if one.kind in ("name", "unknown") for word in one.text.split()}
    read = default_unknown_words()
    assert [word for word in words if read(word) != teacher.g2p.oov(word)] == []


def test_lengths_are_the_same_but_for_the_rounding_to_eight_bits(teacher: hibari.Hibari) -> None:
    graph = onnx.shape_inference.infer_shapes(onnx.load(Path(hibari.__file__).parent / "assets" / "hibari.onnx"))
    part = onnx.utils.Extractor(graph).extract_model(["ids", "speed"], [LENGTHS])
    session = onnxruntime.InferenceSession(part.SerializeToString(), providers=["CPUExecutionProvider"])
    differences: list[float] = []
    for one in references()[::10]:
        given = {"ids": np.array([teacher.ids(one.teacher)], np.int64), "speed": np.ones(1, np.float32)}
        theirs = session.run([LENGTHS], given)[0].ravel()
        ours = np.maximum(np.round(default_lengths().units((EDGE, *one.teacher, EDGE))), 1)
        differences += (ours - theirs).tolist()
    assert np.abs(differences).max() <= 1 and np.count_nonzero(differences) < 0.01 * len(differences)


def test_the_files_are_made_from_the_wheel() -> None:
    from tests.tools import natural_front_end as recipe

    assert recipe.pronunciations() == bundled(lexicon.FILE).read_bytes()
    for file, made in ((lengths.FILE, recipe.lengths_weights()), (unknown_words.FILE, recipe.unknown_words_weights())):
        shipped, remade = read_weights(bundled(file)), load(made)
        assert shipped.keys() == remade.keys()
        assert all(torch.equal(value, remade[name]) for name, value in shipped.items())
    with np.load(bundled(tagger.FILE)) as ours, np.load(BytesIO(recipe.tagger_weights())) as again:
        assert all(np.array_equal(ours[name], again[name]) for name in ours.files)
