"""Recorded steps of masked models give the same results, by shapes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from paretone.models.catalogue import voice
from paretone.models.kernels.graphs import GraphCache
from paretone.setting.setting import Setting
from paretone.speaking import synthesise
from tests.engine.models.kernels.replaying import Again, graphs, masked
from tests.engine.models.omnivoice import small_release

BLOCKS = small_release.used(
    "blockwise", block=16, first_block=16, first_steps=2, later_steps=3, adaptive=False, look_ahead=16, text_every=1
)


def say(model, chosen: Setting, text: str = small_release.TEXT):
    return synthesise(model, text, voice("", "OmniVoice"), chosen)


@pytest.mark.parametrize("bucket", [1, 32])
@pytest.mark.parametrize(
    "techniques",
    [
        (),
        (small_release.used("guidance_interval", steps=2),),
        (small_release.used("guidance_stride"),),
        (BLOCKS,),
        (replace(BLOCKS, knobs=BLOCKS.knobs.replace(look_ahead=0)),),
    ],
)
def test_masked_models_say_the_same(tmp_path, techniques, bucket):
    record = Again()
    plain = small_release.setting(*techniques)
    recorded = plain.with_technique(graphs(bucket=bucket, most=16))
    model = masked(tmp_path, record)
    expected, found = say(model, plain), say(model, recorded)
    for one, other in zip(expected.trace.demasking.passages, found.trace.demasking.passages, strict=True):
        np.testing.assert_array_equal(one.codes, other.codes)
        np.testing.assert_array_equal(one.order, other.order)
    np.testing.assert_allclose(found.samples, expected.samples, atol=1e-5)
    assert record.replayed == found.measurements.evaluations, "every step is a recorded one"
    assert found.measurements.ops_ratio == pytest.approx(expected.measurements.ops_ratio)
    kept = record.recorded
    again = say(model, recorded)
    np.testing.assert_allclose(again.samples, expected.samples, atol=1e-5)
    assert record.recorded == kept


def test_texts_and_blocks_of_masked_models_share_recordings(tmp_path):
    record = Again()
    model, plain = masked(tmp_path, record), small_release.setting()
    texts = (small_release.TEXT, "Rice is often served cold.", "Rice is served.")
    lengths = set()
    for text in texts:
        expected, found = say(model, plain, text), say(model, plain.with_technique(graphs(bucket=128)), text)
        (one,), (other,) = expected.trace.demasking.passages, found.trace.demasking.passages
        np.testing.assert_array_equal(one.codes, other.codes)
        lengths.add(one.codes.shape[1])
        assert record.recorded == 1, "one graph has room for all"
    assert len(lengths) == 3
    blocks = small_release.setting(replace(BLOCKS, knobs=BLOCKS.knobs.replace(look_ahead=0)))
    expected = say(model, blocks, small_release.LONG)
    found = say(model, blocks.with_technique(graphs(bucket=256)), small_release.LONG)
    (one,), (other,) = expected.trace.demasking.passages, found.trace.demasking.passages
    assert len(one.blocks) > 4
    np.testing.assert_array_equal(one.codes, other.codes)
    assert record.recorded == 2, "and one for all blocks"
    exact = Again()
    model._graphs = GraphCache(exact)
    say(model, blocks.with_technique(graphs(bucket=1, most=64)), small_release.LONG)
    assert exact.recorded > 1, "which without a bucket differ"
