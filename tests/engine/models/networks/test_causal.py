"""The causal transformer, for training and for decoding, against itself and against transformers."""

from dataclasses import astuple, replace

import pytest
import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from paretone.errors import CheckpointError
from paretone.models.kernels.fused_causal import FusedTransformer
from paretone.models.networks.causal import CausalConfig, Llama3Scaling
from tests.engine.models.llasa.small_release import CONFIG as LLAMA_3
from tests.engine.models.small_causal import LLAMA, QWEN, QWEN3, SCALED, small_transformer
from tests.workload import crossed

LENGTH = 11
CLOSE = 1e-5


def embedded(batch: int = 1, length: int = LENGTH, width: int = LLAMA.hidden) -> Tensor:
    return torch.randn(batch, length, width, generator=torch.Generator().manual_seed(5))


@pytest.mark.parametrize("config", [LLAMA, QWEN, SCALED, QWEN3], ids=["llama", "qwen2", "scaled", "qwen3"])
def test_it_computes_what_transformers_does(config: CausalConfig) -> None:
    transformers = pytest.importorskip("transformers")
    rope = {"rope_type": "llama3" if config.rope_scaling else "default", "rope_theta": config.rope_theta}
    if config.rope_scaling:
        names = "factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings"
        rope |= zip(names, astuple(config.rope_scaling), strict=True)
    kind = "Qwen3" if config.normed else "Qwen2" if config.biased else "Llama"
    described = getattr(transformers, f"{kind}Config")(
        hidden_size=config.hidden,
        num_hidden_layers=config.layers,
        num_attention_heads=config.heads,
        num_key_value_heads=config.key_value_heads,
        head_dim=config.head_width,
        intermediate_size=config.feed_forward,
        rms_norm_eps=config.epsilon,
        rope_parameters=rope,
        max_position_embeddings=512,
        vocab_size=2,
    )
    # The type of a Qwen3 alone is read by the models that know it.
    read = CausalConfig.read({**described.to_dict(), **({"model_type": "llama"} if config.normed else {})})
    assert replace(read, normed=config.normed) == config
    official = getattr(transformers, f"{kind}Model")(described).eval()
    plain = small_transformer(config)
    loaded = official.load_state_dict(plain.state_dict(), strict=False)
    assert loaded.missing_keys == ["embed_tokens.weight"] and not loaded.unexpected_keys
    positions = torch.tensor([*range(70, 76), *range(LENGTH - 6)])
    x = embedded()
    with torch.inference_mode():
        # A mask of ones, so that positions that begin again are not taken for a second text.
        mask = torch.ones(1, 1, LENGTH, LENGTH, dtype=torch.bool).tril()
        expected = official(inputs_embeds=x, position_ids=positions[None], attention_mask=mask).last_hidden_state
        torch.testing.assert_close(plain(x, positions=positions), expected, atol=CLOSE, rtol=0)
        torch.testing.assert_close(FusedTransformer.of(plain)(x, positions=positions), expected, atol=CLOSE, rtol=0)


@pytest.mark.parametrize(
    ("config", "kind", "blocks"),
    crossed([LLAMA, QWEN, SCALED, QWEN3], ["plain", "optimised"], [(1,) * LENGTH, (4, 1, 6), (1, 10), (8, 3)]),
)
def test_a_cache_changes_nothing(config: CausalConfig, kind: str, blocks: tuple[int, ...]) -> None:
    plain = small_transformer(config)
    model = plain if kind == "plain" else FusedTransformer.of(plain)
    x, positions = embedded(2), torch.tensor([3, 4, 5, 0, 1, 2, 3, 4, 9, 10, 11])
    cache = model.cache(LENGTH, batch=2)
    split = zip(x.split(blocks, 1), positions.split(blocks), strict=True)
    parts = [model(part, cache, places) for part, places in split]
    torch.testing.assert_close(torch.cat(parts, 1), plain(x, positions=positions), atol=CLOSE, rtol=0)
    assert cache.length == LENGTH


@pytest.mark.parametrize("config", [LLAMA, QWEN, QWEN3, replace(LLAMA, key_value_heads=LLAMA.heads)])
def test_sequences_together_are_as_alone_whatever_their_caches_have_in_common(config: CausalConfig) -> None:
    plain = small_transformer(config)
    model, others = FusedTransformer.of(plain), embedded(5)
    prefixes = [embedded(1, 4), embedded(1, 6) * 0.5]
    begun = [model.cache(4), model.cache(6)]
    for one, cache in zip(prefixes, begun, strict=True):
        model.fill(one, cache, torch.arange(one.shape[1]))
    kept = [one.kept() for one in begun]
    caches, expected, new = [], [], []
    # Two of one voice, two of another, one alone; they have read 2 to 6 tokens more, and read 1 to 3 now.
    for number, (voice, read, count) in enumerate(((0, 2, 1), (0, 5, 3), (1, 6, 1), (1, 3, 1), (None, 4, 2))):
        before = others[number : number + 1, : read + count]
        whole = before if voice is None else torch.cat([prefixes[voice], before], 1)
        cache = model.cache(20)
        if voice is not None:
            cache.restore(kept[voice])
        start = cache.length
        model.fill(before[:, :read], cache, torch.arange(start, start + read))
        caches.append(cache)
        new.append(before[:, read:])
        expected.append(plain(whole)[0, -count:])
    positions = [torch.arange(one.length, one.length + len(rows[0])) for one, rows in zip(caches, new, strict=True)]
    found = model.final_norm(model.together(new, caches, positions, lambda *told: None))
    torch.testing.assert_close(found, torch.cat(expected), atol=CLOSE, rtol=0)
    assert [one.length for one in caches] == [7, 12, 13, 10, 6]
    caches[0].crop(3)
    assert caches[0].prefix is None and caches[1].prefix is kept[0]


@pytest.mark.parametrize("kind", ["plain", "optimised"])
def test_layers_kept_and_layers_skipped_agree(kind: str) -> None:
    plain = small_transformer(QWEN)
    model = plain if kind == "plain" else FusedTransformer.of(plain)
    fewer = model.kept([0, 2]).requires_grad_(False)
    assert fewer.config == replace(QWEN, layers=2)
    x, cache = embedded(), fewer.cache(LENGTH)
    expected = plain(x, skip=frozenset({1, 3}))
    assert (expected - plain(x)).abs().max() > 0.01
    torch.testing.assert_close(fewer(x, cache), expected, atol=CLOSE, rtol=0)
    torch.testing.assert_close(model(x, skip=frozenset({1, 3})), expected, atol=CLOSE, rtol=0)


def test_replaced_layers() -> None:
    plain, other = small_transformer(), small_transformer(seed=1)
    replaced = FusedTransformer.of(plain).replaced({2: other.layers[0]})
    plain.layers[2] = other.layers[0]
    torch.testing.assert_close(replaced(embedded()), plain(embedded()), atol=CLOSE, rtol=0)


def test_a_look_inside() -> None:
    plain, seen = small_transformer(), {}
    x = embedded(2)

    def probe(layer: int, name: str, value: Tensor) -> None:
        seen[layer, name] = value

    hidden = plain(x, probe=probe, attention=True)
    assert set(seen) == {(layer, name) for layer in range(4) for name in ("output", "attention")}
    torch.testing.assert_close(plain.norm(seen[3, "output"]), hidden)
    torch.testing.assert_close(hidden, plain(x), atol=CLOSE, rtol=0)
    weights = seen[0, "attention"]
    assert weights.shape == (2, 4, LENGTH, LENGTH)
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, 4, LENGTH))
    assert not weights.triu(1).any()
    # The same inside the other kind, and after a cache.
    outputs = {}
    FusedTransformer.of(plain)(x, probe=lambda layer, name, value: outputs.update({(layer, name): value.clone()}))
    for layer in range(4):
        torch.testing.assert_close(outputs[layer, "output"], seen[layer, "output"], atol=CLOSE, rtol=0)
    cache = plain.cache(LENGTH, 2)
    plain(x[:, :7], cache)
    plain(x[:, 7:], cache, probe=probe, attention=True)
    torch.testing.assert_close(seen[0, "attention"], weights[:, :, 7:], atol=CLOSE, rtol=0)


def test_every_parameter_is_trained() -> None:
    plain = small_transformer(QWEN).requires_grad_(True)
    plain(embedded(2)).square().sum().backward()
    for name, one in plain.named_parameters():
        assert "k_proj.b" in name or (one.grad is not None and one.grad.any())


@pytest.mark.parametrize(("tokens", "context"), [(1, 9), (4, 6)])
def test_operations_are_those_of_the_products(tokens: int, context: int) -> None:
    plain = small_transformer()
    cache = plain.cache(tokens + context)
    if context:
        plain(embedded(length=context), cache)
    with FlopCounterMode(display=False) as counter:
        plain(embedded(length=tokens), cache, probe=lambda *_: None, attention=True)
    # The reference computes what is masked as well.
    masked = tokens * (tokens - 1) / 2 * 4 * LLAMA.heads * LLAMA.head_width * LLAMA.layers
    assert plain.config.operations(tokens, context) == counter.get_total_flops() - masked


def test_configurations_are_read() -> None:
    config = CausalConfig.read(LLAMA_3)
    assert config == CausalConfig(64, 3, 4, 2, 16, 96, 1e-5, 500000.0, Llama3Scaling(32.0, 1.0, 4.0, 8192))
    qwen = {**LLAMA_3, "model_type": "qwen2", "head_dim": None, "rope_scaling": None}
    assert CausalConfig.read(qwen) == replace(config, rope_scaling=None, biased=True)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model_type": "mistral"}, "type 'mistral'"),
        ({"hidden_act": "gelu"}, "hidden_act 'gelu'"),
        ({"rope_scaling": {"type": "linear", "factor": 2.0}}, "'linear'"),
        ({"hidden_size": None}, "'hidden_size'"),
    ],
)
def test_configurations_of_something_else(changes: dict, message: str) -> None:
    config = {name: value for name, value in {**LLAMA_3, **changes}.items() if value is not None}
    with pytest.raises(CheckpointError, match=message):
        CausalConfig.read(config)
