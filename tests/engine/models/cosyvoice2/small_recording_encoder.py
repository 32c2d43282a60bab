"""Real ONNX models that take what the official ones take and give what they give; what they say means nothing."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from paretone.models.cosyvoice2.speech_tokenizer import SPEAKER, TOKENIZER


def write_recording_encoder(folder: Path, codes: int, speaker_width: int) -> None:
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
        TOKENIZER,
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
