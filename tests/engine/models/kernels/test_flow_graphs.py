"""Recorded forwards of flow models give the same results, by shapes."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable

import numpy as np
import pytest
from torch import Tensor

from paretone.setting.knobs import Values
from paretone.setting.setting import Setting, UsedTechnique
from paretone.speaking import scripted, synthesise
from tests.engine import small_speech
from tests.engine.models.kernels.replaying import Again, Told, flow, graphs


def spoken(model, setting: Setting, text: str = "One sentence."):
    return synthesise(model, text, small_speech.VOICE, setting)


@pytest.mark.parametrize("bucket", [1, 32])
@pytest.mark.parametrize("options", [{}, {"guidance": 0.0}, {"solver": "midpoint"}])
def test_flow_models_say_the_same(bucket, options):
    record = Again()
    plain = small_speech.setting(4, **options)
    expected = spoken(flow(record), plain)
    found = spoken(flow(record), plain.with_technique(graphs(bucket=bucket)))
    np.testing.assert_allclose(found.samples, expected.samples, atol=1e-5)
    assert record.recorded == 1
    assert record.replayed == (8 if options.get("solver") == "midpoint" else 4)
    assert found.measurements.ops_ratio == expected.measurements.ops_ratio
    frames = 22 if bucket == 1 else 32
    assert any(f"of an evaluation of {frames} frames" in note for note in found.notes)


def test_what_is_recorded_outside_of_a_take_is_told_to_none():
    record, take = Again(), Told()
    model, chosen = flow(record), small_speech.setting(4).with_technique(graphs(bucket=1))
    synthesise(model, "One sentence.", small_speech.VOICE, chosen, (), take)
    assert len(take.lines) == record.recorded == 1
    alone = small_speech.setting(4, guidance=0.0).with_technique(graphs(bucket=1))
    model.sampling(scripted(model, "One sentence.", small_speech.VOICE, alone))()
    assert record.recorded == 2 and len(take.lines) == 1


def test_the_flat_transformer_of_e2_says_the_same():
    """Its convolutions would see padding, so every length has a separate recording."""
    record = Again()
    plain = small_speech.setting(4)
    expected = spoken(flow(record, "flat"), plain)
    found = spoken(flow(record, "flat"), plain.with_technique(graphs(bucket=32)))
    np.testing.assert_allclose(found.samples, expected.samples, atol=1e-5)
    assert (record.recorded, record.replayed) == (1, 4)
    assert any("of an evaluation of 22 frames" in note for note in found.notes)


def test_passages_share_recordings():
    record = Again()
    model = flow(record)
    setting = small_speech.setting(3).with_technique(graphs(bucket=32))
    plain = spoken(flow(record), small_speech.setting(3), "One. Two. Three.")
    found = spoken(model, setting, "One. Two. Three.")
    np.testing.assert_allclose(found.samples, plain.samples, atol=1e-5)
    assert record.recorded == 1 and record.replayed == 9
    assert not any("Recording" in note for note in spoken(model, setting).notes), "it is there already"


def test_guided_and_unguided_evaluations_have_recordings_of_their_own():
    record = Again()
    interval = UsedTechnique("guidance_interval", Values(steps=2))
    plain = small_speech.setting(5).with_technique(interval)
    expected = spoken(flow(record), plain)
    found = spoken(flow(record), plain.with_technique(graphs()))
    np.testing.assert_allclose(found.samples, expected.samples, atol=1e-5)
    assert record.recorded == 2


def test_a_failed_recording_falls_back():
    def fails(run: Callable[[], Tensor]) -> tuple[Callable[[], None], Tensor]:
        raise RuntimeError("no room")

    found = spoken(flow(fails), small_speech.setting(3).with_technique(graphs()))
    expected = spoken(flow(fails), small_speech.setting(3))
    np.testing.assert_array_equal(found.samples, expected.samples)
    assert any("(no room), so it ran without one" in note for note in found.notes)


def test_half_precision_is_recorded_too():
    record = Again()
    half = UsedTechnique("precision", Values(precision="bfloat16"))
    plain = small_speech.setting(3).with_technique(half)
    expected = spoken(flow(record), plain)
    found = spoken(flow(record), plain.with_technique(graphs(bucket=1)))
    np.testing.assert_allclose(found.samples, expected.samples, atol=1e-4)


def test_a_recording_keeps_what_it_is_of():
    """It is found by the backbone's identity, which another one could have once the first is gone."""
    model = flow(lambda run: (lambda: None, run()))
    spoken(model, small_speech.setting(2).with_technique(graphs()))
    (recording,) = (one.entry for one in model._graphs._kept.values())
    backbone = weakref.ref(model._backbone)
    del model
    gc.collect()
    assert backbone() is not None
    del recording
    gc.collect()
    assert backbone() is None
