"""GGUF files hold every tensor and the vocabulary; where llama-cpp-python is installed, it says what we say."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from paretone.errors import ProfileError
from paretone.export.gguf_file import UNSPOKEN
from paretone.models.files.checkpoints import metadata_of
from tests.engine.export import small_exports
from tests.engine.export.small_exports import COSYVOICE, LLASA, LM_MINI, Exported, exported, write_small

gguf = pytest.importorskip("gguf")
ATTENTION = {f"attn_{one}": f"self_attn.{one[0]}_proj" for one in ("q", "k", "v", "output")}
FEED_FORWARD = {f"ffn_{one}": f"mlp.{one}_proj" for one in ("gate", "up", "down")}
NAMES = ATTENTION | FEED_FORWARD | {"attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm"}
"""What llama.cpp calls the parts of a layer, and what transformers call them."""


@pytest.fixture(scope="module", params=[LLASA, COSYVOICE])
def one(request: pytest.FixtureRequest, patch: pytest.MonkeyPatch, tmp_path_factory: Any) -> Exported:
    """A student that speaks and a draft, of each model, in float32."""
    root = write_small(request.param, tmp_path_factory.mktemp(request.param))
    for path in root.glob("*s/*.safetensors"):
        save_file({name: value.float() for name, value in load_file(path).items()}, path, metadata_of(path))
    return exported(root, request.param, small_exports.student(), small_exports.drafted())


@pytest.fixture(scope="module")
def folder(one: Exported, tmp_path_factory: Any) -> Path:
    return one.to("gguf", tmp_path_factory.mktemp("out") / "folder")


def test_every_tensor_is_there(one: Exported, folder: Path) -> None:
    found = {tensor.name: tensor.data for tensor in gguf.GGUFReader(folder / "model.gguf").tensors}
    (path,) = (one.root / "students").glob("*.safetensors")
    expected = load_file(path)
    cosy = one.profile.setting.model == COSYVOICE
    prefix = "llm.model.model." if cosy else "model."
    for layer in range(2):
        for theirs, ours in NAMES.items():
            value = found.pop(f"blk.{layer}.{theirs}.weight")
            heads = {"attn_q": 4, "attn_k": 2}.get(theirs)
            if heads and not cosy:  # In llama.cpp's order of rows; back to that of the official class.
                value = value.reshape(heads, value.shape[0] // heads // 2, 2, -1).swapaxes(1, 2).reshape(value.shape)
            assert np.array_equal(value, expected[f"{prefix}layers.{layer}.{ours}.weight"].numpy()), ours
            if cosy and theirs in ("attn_q", "attn_k", "attn_v"):
                bias = expected[f"{prefix}layers.{layer}.{ours}.bias"]
                assert np.array_equal(found.pop(f"blk.{layer}.{theirs}.bias"), bias.numpy())
    assert np.array_equal(found.pop("output_norm.weight"), expected[f"{prefix}norm.weight"].numpy())
    embedding, head = found.pop("token_embd.weight"), found.pop("output.weight")
    if cosy:
        tables = ("llm.model.model.embed_tokens.weight", "llm_embedding.weight", "speech_embedding.weight")
        assert np.array_equal(embedding, torch.cat([expected[name] for name in tables]).numpy())
        spoken = expected["llm_decoder.weight"]
        assert np.array_equal(head[-len(spoken) :], spoken.numpy()) and not head[: -len(spoken)].any()
        bias = found.pop("output.bias")
        assert np.array_equal(bias[-len(spoken) :], expected["llm_decoder.bias"].numpy())
        assert (bias[: -len(spoken)] == np.float32(UNSPOKEN)).all()
    else:
        assert np.array_equal(embedding, expected["model.embed_tokens.weight"].numpy())
        assert np.array_equal(head, expected["lm_head.weight"].numpy())
        factors = found.pop("rope_freqs.weight")
        assert factors.shape == (8,) and factors[0] == 1 and factors[-1] == pytest.approx(32)
    assert not found


def test_the_metadata_is_complete(one: Exported, folder: Path) -> None:
    vocabulary = json.loads((folder / "prompts.json").read_text())["vocabulary"]
    for name, layers in (("model.gguf", 2), ("draft.gguf", 2)):
        field = {key: value.contents() for key, value in gguf.GGUFReader(folder / name).fields.items()}
        kind = field["general.architecture"]
        assert kind == ("qwen2" if one.profile.setting.model == COSYVOICE else "llama")
        assert field[f"{kind}.block_count"] == layers
        assert field[f"{kind}.embedding_length"] == 64 and field[f"{kind}.feed_forward_length"] == 96
        assert (field[f"{kind}.attention.head_count"], field[f"{kind}.attention.head_count_kv"]) == (4, 2)
        assert field[f"{kind}.rope.dimension_count"] == 16
        assert len(field["tokenizer.ggml.tokens"]) == len(field["tokenizer.ggml.token_type"]) == vocabulary["size"]
        assert field["tokenizer.ggml.tokens"][vocabulary["first_code"]] == "<|s_0|>"
        assert field["tokenizer.ggml.merges"]
        ends = [field[f"tokenizer.ggml.{end}_token_id"] for end in ("eos", "eot", "eom")[: len(vocabulary["stops"])]]
        assert ends == vocabulary["stops"]


def test_the_release_keeps_its_precision(patch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    one = exported(write_small(LLASA, tmp_path), LLASA)
    place = one.to("gguf", tmp_path / "out")
    assert not (place / "draft.gguf").exists()
    own = load_file(one.root / "model.safetensors")
    found = {tensor.name: tensor for tensor in gguf.GGUFReader(place / "model.gguf").tensors}
    table = found["token_embd.weight"]
    assert table.tensor_type == gguf.GGMLQuantizationType.BF16
    words = torch.from_numpy(table.data.copy()).view(torch.bfloat16)
    assert torch.equal(words.reshape(own["model.embed_tokens.weight"].shape), own["model.embed_tokens.weight"])
    assert "output.weight" not in found  # It is the table of the embedding.


def test_what_counts_positions_anew_is_refused(tmp_path: Path) -> None:
    one = exported(write_small(LM_MINI, tmp_path), LM_MINI)
    with pytest.raises(ProfileError, match=r"llama\.cpp gives every token the next one"):
        one.to("gguf", tmp_path / "out")


def test_greedy_tokens_are_ours_in_llama_cpp(one: Exported, folder: Path) -> None:
    pytest.importorskip("llama_cpp", reason="llama-cpp-python is built from source, and not part of the set-up")
    module: dict[str, Any] = {"__name__": "generate", "__file__": str(folder / "generate.py")}
    exec(compile((folder / "generate.py").read_text(), "generate.py", "exec"), module)
    model, content = module["load"](folder, 1)
    ours = one.greedy()
    assert [module["generate"](model, content, number, greedy=True) for number in range(len(ours))] == ours
    scored = module["Llama"](str(folder / "model.gguf"), n_ctx=512, n_batch=512, logits_all=True, verbose=False)
    vocabulary = content["vocabulary"]
    tokens = torch.randint(0, vocabulary["codes"], (30,), generator=torch.Generator().manual_seed(1)).tolist()
    scored.eval([*content["prompts"][0]["ids"], *(vocabulary["first_code"] + token for token in tokens)])
    spoken = [*range(vocabulary["first_code"], vocabulary["first_code"] + vocabulary["codes"]), *vocabulary["stops"]]
    found = torch.from_numpy(scored.scores[scored.n_tokens - len(tokens) - 1 : scored.n_tokens, spoken])
    expected = one.scores(tokens)
    assert torch.allclose(found, expected, rtol=1e-3, atol=1e-3 * float(expected.abs().max()))
    text = content["prompts"][0]["ids"]
    assert model.tokenize(model.detokenize(text, special=True), add_bos=False, special=True) == text
