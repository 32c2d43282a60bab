"""Recorded passes of language models give the same results, by shapes."""

from __future__ import annotations

import pytest
import torch

from paretone.models.catalogue import voice
from paretone.models.kernels.causal_graphs import GraphedTransformer
from paretone.models.kernels.graphs import GraphCache
from paretone.speaking import scripted
from tests.engine import speaking
from tests.engine.models.kernels.replaying import Again, Told, graphs, language
from tests.engine.small_language import write_model


@pytest.mark.parametrize("bucket", [16, 64])
def test_passes_have_the_same_hidden_states(tmp_path, bucket):
    """Token by token, several at once, some taken back, and again from the beginning: all after one prompt."""
    record = Again()
    plain = speaking.load(write_model(tmp_path / "model")).own.tokens
    graphs: GraphCache = GraphCache(record)
    graphs.most = 32
    graphed = plain.with_transformer(GraphedTransformer(plain.transformer, graphs, bucket))
    generator = torch.Generator().manual_seed(0)
    for _ in range(2):
        caches = [one.cache(90) for one in (plain, graphed)]
        for tokens, kept in (
            (30, 30),
            (1, 31),
            (1, 32),
            (4, 34),
            (4, 38),
            (1, 39),
            *((1, one) for one in range(40, 70)),
        ):
            embedded = torch.randn(1, tokens, plain.transformer.config.hidden, generator=generator)
            start = caches[0].length
            places = torch.arange(start, start + tokens)
            states = [
                one.transformer(embedded, cache, places) for one, cache in zip((plain, graphed), caches, strict=True)
            ]
            torch.testing.assert_close(states[1], states[0], atol=1e-4, rtol=1e-4)
            for cache in caches:
                cache.crop(kept)
    assert record.replayed == 2 * 35, "all but the prompts"
    assert record.recorded == len(graphs) < 12


def test_language_models_speak_by_recordings(tmp_path):
    record = Again()
    model = language(write_model(tmp_path / "model"), record)
    chosen = speaking.setting(graphs(bucket=64))
    found = speaking.spoken(model, chosen)
    expected = speaking.spoken(model, speaking.setting())
    assert found.trace.decoding.tokens[:20] == expected.trace.decoding.tokens[:20]
    assert record.replayed == found.measurements.target_passes
    assert any("a pass over 1 token within" in note for note in found.notes)
    before = record.recorded
    again = speaking.spoken(model, chosen)
    assert again.trace.decoding.tokens == found.trace.decoding.tokens
    assert record.recorded == before, "the next request has the same recordings"


def test_tokens_decoded_outside_of_a_take_are_told_to_none(tmp_path):
    record, take = Again(), Told()
    model, chosen = language(write_model(tmp_path / "model"), record), speaking.setting(graphs(bucket=16))
    speaking.spoken(model, chosen, observer=take)
    told, before = len(take.lines), record.recorded
    assert told == before > 0
    for _, decoding in model.decodings(
        scripted(model, f"{speaking.TEXT} {speaking.TEXT}", voice("", "lm-mini"), chosen)
    ):
        list(decoding)
    assert record.recorded > before and len(take.lines) == told


def test_drafts_are_recorded_too(tmp_path):
    record, root = Again(), speaking.write_all(tmp_path / "model")
    drafted = speaking.drafted(draft_length=3, adaptive=False)
    found = speaking.spoken(language(root, record), speaking.setting(drafted, graphs(bucket=32)))
    assert any("a pass over 4 tokens" in note for note in found.notes)
    assert any("a pass over 1 token" in note for note in found.notes)
    assert record.replayed > found.measurements.target_passes
