"""Backbones in fewer bits: the useful precisions on a device, and copies of a backbone in them.

Attention and feed-forward modules compute in fewer bits. The state, the residual stream, norms and AdaLN tables, rotary
embedding, input layers and last projections stay float32, so rounding errors of layers do not add up in the stream, and
module outputs that techniques keep are float32 as well.

Measured on f5-mini (one core with AMX; mean velocity 2.9): bfloat16 is 1.7 to 2.0 times as fast as float32, with a mean
velocity error of 0.0035; int8 1.3 times, with 0.020; float16 0.95 to 1.04 times, so CPUs do not offer it.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterator
from functools import cache
from typing import TypeVar

import torch
from torch import Tensor, nn

from paretone.models.f5.unett import UNetT
from paretone.models.networks.diffusion import DiffusionTransformer
from paretone.models.networks.layers import FeedForward, SelfAttention
from paretone.setting.plan import WHOLE


class Int8Linear(nn.Module):
    """(…, inputs) to (…, outputs), float32. Weights are integers with one scale per output, chosen so that the largest
    is 127; inputs have one scale per call, and 7 bits on processors that would saturate sums of products."""

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        super().__init__()
        self._packed = self._whole(weight.detach(), bias)
        self._seven_bits = self._saturates()

    def forward(self, x: Tensor) -> Tensor:
        return torch.ops.quantized.linear_dynamic(x, self._packed, self._seven_bits)

    @classmethod
    def available(cls) -> bool:
        """Whether this build of torch has a back end for it."""
        return cls._engine() is not None

    @classmethod
    @cache
    def _saturates(cls) -> bool:
        """Whether sums of two 8-bit products saturate at 16 bits, as without VNNI instructions; of 7 bits none does."""
        largest = torch.ones(64, 64, device="cpu")
        found = torch.ops.quantized.linear_dynamic(largest, cls._whole(largest, None), False)
        return bool(found.min() < 0.9 * 64)

    @classmethod
    def _whole(cls, weight: Tensor, bias: Tensor | None) -> object:
        scales = weight.abs().amax(dim=1).clamp_min(torch.finfo(weight.dtype).tiny).double() / 127
        before, engine = torch.backends.quantized.engine, cls._engine()
        if engine is None:
            raise ValueError("This build of torch has no products of whole numbers; see available.")
        try:
            torch.backends.quantized.engine = engine
            with warnings.catch_warnings():
                # Torch plans to replace its quantised tensors, but offers no equally fast alternative.
                warnings.simplefilter("ignore", UserWarning)
                whole = torch.quantize_per_channel(
                    weight, scales, torch.zeros(len(scales), dtype=torch.long), 0, torch.qint8
                )
                return torch.ops.quantized.linear_prepack(whole, None if bias is None else bias.detach())
        finally:
            torch.backends.quantized.engine = before

    @staticmethod
    def _engine() -> str | None:
        # oneDNN's products are twice as fast as the others with AMX.
        engines = "onednn", "x86", "fbgemm", "qnnpack"
        return next((one for one in engines if one in torch.backends.quantized.supported_engines), None)


DTYPES = {"bfloat16": torch.bfloat16, "float16": torch.float16}

Model = TypeVar("Model", DiffusionTransformer, UNetT)


def offered(device: torch.device) -> tuple[str, ...]:
    if device.type == "cuda":
        native = torch.cuda.is_bf16_supported(including_emulation=False)  # Cards before Ampere emulate it.
        return ("float32", "bfloat16", "float16") if native else ("float32", "float16")
    if device.type == "mps":
        return "float32", "float16"
    # Without native instructions, fewer bits are emulated, which takes longer than float32.
    has_bfloat16 = torch.ops.mkldnn._is_mkldnn_bf16_supported() and _has("amx_tile", "avx512_bf16")
    has_int8 = Int8Linear.available() and _has("vnni", "amx_tile")
    return ("float32", *["bfloat16"] * has_bfloat16, *["int8"] * has_int8)


def upstream(device: torch.device) -> str:
    """Precision in which F5-TTS's own code (``utils_infer.py``) runs the whole model on ``device``: float16 on NVIDIA
    cards of compute capability 7 and above, with the state in it as well, which stays float32 here."""
    has_tensor_cores = device.type == "cuda" and torch.cuda.get_device_capability(device) >= (7, 0)
    return f"float16{WHOLE}" if has_tensor_cores else "float32"


def in_precision(backbone: Model, precision: str) -> Model:
    """``backbone`` in ``precision``, sharing all weights that stay float32."""
    if precision == "float32":
        return backbone
    if precision.endswith(WHOLE):
        narrowed = copy.deepcopy(backbone)
        for parameter in narrowed.parameters():  # Not buffers: positions multiply the error of rotary frequencies.
            parameter.data = parameter.data.to(DTYPES[precision.removesuffix(WHOLE)])
        for module in _modules(narrowed):
            module.fuse()  # Discards float32 packing.
        return narrowed
    narrow = {id(one) for module in _modules(backbone) for one in module.parameters()} if precision in DTYPES else set()
    narrowed = copy.deepcopy(backbone, {id(one): one for one in backbone.parameters() if id(one) not in narrow})
    dtype = DTYPES.get(precision)
    for module in _modules(narrowed):
        if dtype is None:
            _quantise(module)
            continue
        # It takes and returns float32.
        module.to(dtype)
        module.fuse()  # Discards float32 packing.
        module.register_forward_pre_hook(lambda module, given: (given[0].to(dtype), *given[1:]))
        module.register_forward_hook(lambda module, given, output: output.float())
    return narrowed


def _modules(backbone: DiffusionTransformer | UNetT) -> Iterator[SelfAttention | FeedForward]:
    for block in backbone.blocks:
        yield block.attention
        yield block.feed_forward


def _quantise(module: nn.Module) -> None:
    """Compute the weight products of ``module`` in integers."""
    kept = set()
    if isinstance(module, SelfAttention):
        weight, bias = (torch.cat([getattr(one, name) for one in module.inputs]) for name in ("weight", "bias"))
        module.project_by(Int8Linear(weight, bias).forward)
        kept = set(module.inputs)  # Attention views need queries and keys before rotation.
    for parent in list(module.modules()):
        for name, child in list(parent.named_children()):
            if isinstance(child, nn.Linear) and child not in kept:
                setattr(parent, name, Int8Linear(child.weight, child.bias))


def _has(*features: str) -> bool:
    """Whether the processor has one of these features."""
    return any(getattr(torch.cpu, f"_is_{one}_supported", bool)() for one in features)
