"""CosyVoice 2 of a few thousand weights: a release on disk, and its parts in memory."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from paretone.models.cosyvoice2.config import EncoderConfig, EstimatorConfig, FlowConfig, HiftConfig
from paretone.models.cosyvoice2.hift import GENERATOR, PLAIN_CONVOLUTIONS, Hift
from paretone.models.cosyvoice2.language_model import STOPS
from paretone.models.cosyvoice2.speech_tokenizer import SPEAKER, TOKENIZER
from paretone.models.cosyvoice2.token_to_mel import AcousticPrompt, TokenFlow, TokenToMel
from paretone.models.files.checkpoints import shapes_of
from paretone.models.networks.causal import CausalConfig, CausalTransformer
from paretone.models.networks.layers import PARAMETRISED, stored_shapes

CODES, TEXT_ROWS, SPEAKER_WIDTH = 100, 320, 24
QWEN2 = {
    "model_type": "qwen2",
    "hidden_act": "silu",
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_attention_heads": 4,
    "num_hidden_layers": 3,
    "num_key_value_heads": 2,
    "rms_norm_eps": 1e-6,
    "rope_theta": 1e6,
    "tie_word_embeddings": True,
    "use_sliding_window": False,
    "vocab_size": TEXT_ROWS,
}
FLOW = FlowConfig(
    tokens=CODES,
    speaker_width=SPEAKER_WIDTH,
    encoder=EncoderConfig(width=32, heads=2, feed_forward=48, layers=1, upsampled_layers=1),
    estimator=EstimatorConfig(channels=32, heads=1, blocks=1, middle_stages=1),
)
VOCODER = HiftConfig(channels=32, pitch_channels=16)
EAGER_END = 30.0
"""Bias of the id that ends speech: it comes as soon as it may."""


def random_weights(shapes: dict[str, tuple[int, ...]], seed: int) -> dict[str, Tensor]:
    """Small random numbers of these shapes; norms keep their size."""
    generator = torch.Generator().manual_seed(seed)
    return {
        name: (1.0 if "norm" in name and name.endswith("weight") else 0.0)
        + 0.1 * torch.randn(shape, generator=generator)
        for name, shape in shapes.items()
    }


def language_weights(layers: int = QWEN2["num_hidden_layers"], end: float = EAGER_END) -> dict[str, Tensor]:
    """As ``llm.pt`` holds them; the head of text is the table of text."""
    config = CausalConfig.read(QWEN2 | {"num_hidden_layers": layers})
    hidden, rows = config.hidden, CODES + STOPS
    body = shapes_of(CausalTransformer(config).state_dict())
    tables = {
        "llm.model.model.embed_tokens.weight": (TEXT_ROWS, hidden),
        "llm_embedding.weight": (2, hidden),
        "speech_embedding.weight": (rows, hidden),
        "llm_decoder.weight": (rows, hidden),
        "llm_decoder.bias": (rows,),
    }
    weights = random_weights(tables | {f"llm.model.model.{name}": shape for name, shape in body.items()}, 1)
    weights["llm_decoder.bias"][CODES] = end
    weights["llm.model.lm_head.weight"] = weights["llm.model.model.embed_tokens.weight"]
    return weights


def write_release(root: Path) -> None:
    """All of it."""
    write_tokenizer(root / "CosyVoice-BlankEN")
    (root / "CosyVoice-BlankEN" / "config.json").write_text(json.dumps(QWEN2), encoding="utf-8")
    write_recording_encoder(root, CODES, SPEAKER_WIDTH)
    torch.save(language_weights(), root / "llm.pt")
    torch.save(random_weights(shapes_of(TokenToMel(FLOW).state_dict()), 2), root / "flow.pt")
    vocoder = random_weights(stored_shapes(Hift(VOCODER), PARAMETRISED, PLAIN_CONVOLUTIONS), 3)
    torch.save({f"{GENERATOR}{name}": value for name, value in vocoder.items()}, root / "hift.pt")


class NoNoise:
    """See :class:`paretone.models.cosyvoice2.hift.Noise`."""

    def __init__(self, config: HiftConfig) -> None:
        self._shape = (config.samples_per_frame, config.harmonics + 1)

    def draw(self, frames: int) -> Tensor:
        """Zeros for the next frames."""
        return torch.zeros(1, frames * self._shape[0], self._shape[1])


CHUNK = 5
TOKENS = 40


def small_flow() -> TokenToMel:
    torch.manual_seed(1)
    encoder = EncoderConfig(width=16, heads=2, feed_forward=32, layers=2, upsampled_layers=1)
    estimator = EstimatorConfig(channels=16, heads=2, head_width=8, blocks=1, middle_stages=1)
    sizes = {"tokens": TOKENS, "speaker_width": 6, "bands": 8, "chunk": CHUNK, "steps": 3}
    model = TokenToMel(FlowConfig(encoder=encoder, estimator=estimator, **sizes))
    for layer in (*model.encoder.encoders, *model.encoder.up_encoders):
        torch.nn.init.normal_(layer.self_attn.pos_bias_u)
        torch.nn.init.normal_(layer.self_attn.pos_bias_v)
    return model.eval().requires_grad_(False)


def seeing_everything(flow: TokenFlow) -> TokenFlow:
    """The flow with attention over the whole request, as upstream has it for requests that are not streamed."""
    whole = type(flow)(replace(flow.config, chunk=10**6))
    whole.load_state_dict(flow.state_dict())
    return whole.to(flow.noise).eval().requires_grad_(False)


def small_vocoder() -> Hift:
    torch.manual_seed(2)
    vocoder = Hift(HiftConfig(bands=8, channels=16, pitch_channels=8))
    torch.nn.init.constant_(vocoder.f0_predictor.classifier.bias, 120.0)
    torch.nn.init.normal_(vocoder.f0_predictor.classifier.weight, std=60.0)
    return vocoder.eval().requires_grad_(False)


def small_prompt(tokens: int = 7) -> AcousticPrompt:
    generator = torch.Generator().manual_seed(3)
    return AcousticPrompt(
        torch.randint(0, TOKENS, (1, tokens), generator=generator),
        torch.randn(1, 2 * tokens, 8, generator=generator),
        torch.randn(1, 6, generator=generator),
    )


def small_speech(tokens: int) -> list[int]:
    return torch.randint(0, TOKENS, (tokens,), generator=torch.Generator().manual_seed(4)).tolist()


def write_recording_encoder(folder: Path, codes: int, speaker_width: int, tokenizer: str = TOKENIZER) -> None:
    """Speech tokens are, of every four frames, the loudest band times a factor, below ``codes``; the speaker is a
    projection of the mean features' squares, ``speaker_width`` wide."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    def constant(name: str, value: np.ndarray) -> onnx.TensorProto:
        return numpy_helper.from_array(value, name)

    def save(name: str, nodes: list, inputs: list, outputs: list, constants: list) -> None:
        graph = helper.make_graph(nodes, name, inputs, outputs, constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
        onnx.checker.check_model(model)
        folder.mkdir(parents=True, exist_ok=True)
        onnx.save(model, folder / name)

    save(
        tokenizer,
        [
            helper.make_node("Slice", ["feats", "start", "feats_length", "axis"], ["heard"]),
            helper.make_node("AveragePool", ["heard"], ["pooled"], kernel_shape=[4], strides=[4]),
            helper.make_node("ArgMax", ["pooled"], ["band"], axis=1, keepdims=0),
            helper.make_node("Mul", ["band", "factor"], ["spread"]),
            helper.make_node("Mod", ["spread", "codes"], ["indices"]),
        ],
        [
            helper.make_tensor_value_info("feats", TensorProto.FLOAT, [1, 128, "frames"]),
            helper.make_tensor_value_info("feats_length", TensorProto.INT32, [1]),
        ],
        [helper.make_tensor_value_info("indices", TensorProto.INT64, [1, "tokens"])],
        [
            constant("start", np.array([0], np.int32)),
            constant("axis", np.array([2], np.int32)),
            constant("factor", np.array([7], np.int64)),
            constant("codes", np.array([codes], np.int64)),
        ],
    )
    projection = np.random.default_rng(0).standard_normal((80, speaker_width)).astype(np.float32)
    save(
        SPEAKER,
        [
            helper.make_node("Mul", ["input", "input"], ["squares"]),
            helper.make_node("ReduceMean", ["squares"], ["mean"], axes=[1], keepdims=0),
            helper.make_node("MatMul", ["mean", "projection"], ["output"]),
        ],
        [helper.make_tensor_value_info("input", TensorProto.FLOAT, [1, "frames", 80])],
        [helper.make_tensor_value_info("output", TensorProto.FLOAT, [1, speaker_width])],
        [constant("projection", projection)],
    )


MERGES = ("t h", "Ġ th", "Ġth e", "h e", "l l", "he ll", "hell o")
SIZE = 256 + len(MERGES)


def write_tokenizer(folder: Path) -> None:
    """``vocab.json``, ``merges.txt`` and ``tokenizer_config.json``."""
    from tokenizers.pre_tokenizers import ByteLevel

    folder.mkdir(parents=True, exist_ok=True)
    entries = [*sorted(ByteLevel.alphabet()), *(merge.replace(" ", "") for merge in MERGES)]
    vocabulary = {entry: number for number, entry in enumerate(entries)}
    (folder / "vocab.json").write_text(json.dumps(vocabulary, ensure_ascii=False), encoding="utf-8")
    (folder / "merges.txt").write_text("\n".join(("#version: 0.2", *MERGES, "")), encoding="utf-8")
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "Qwen2Tokenizer"}), encoding="utf-8")
