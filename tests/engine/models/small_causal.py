"""Small causal transformers and token models with random weights."""

import torch

from paretone.models.families.language_network import TokenModel
from paretone.models.networks.causal import CausalConfig, CausalTransformer, Llama3Scaling

LLAMA = CausalConfig(24, 4, 4, 2, 8, 40, 1e-5, 10000.0)
QWEN = CausalConfig(24, 4, 4, 2, 8, 40, 1e-6, 1000000.0, biased=True)
QWEN3 = CausalConfig(24, 4, 4, 2, 8, 40, 1e-6, 1000000.0, normed=True)
SCALED = CausalConfig(24, 4, 2, 2, 12, 40, 1e-5, 500000.0, Llama3Scaling(32.0, 1.0, 4.0, 48))


def small_transformer(
    config: CausalConfig = LLAMA, seed: int = 0, dtype: torch.dtype = torch.float32
) -> CausalTransformer:
    """Weights are large enough that every layer and every position matters."""
    transformer = CausalTransformer(config).to(dtype)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, weight in transformer.named_parameters():
            noise = torch.randn(weight.shape, generator=generator).to(dtype)
            weight.copy_(1 + 0.3 * noise if name.endswith("norm.weight") else noise * weight.shape[-1] ** -0.5)
    return transformer.requires_grad_(False)


def small_model(codes: int = 20, stops: int = 2, stop_score: float = 0.0, seed: int = 0) -> TokenModel:
    """A token model in float64: one block and single tokens choose alike; ``stop_score`` raises stop ids' scores."""
    transformer = small_transformer(QWEN, seed, torch.float64)
    generator = torch.Generator().manual_seed(seed + 1)
    rows, width = codes + stops, transformer.config.hidden
    embedding, head = (torch.randn(rows, width, generator=generator).double() for _ in range(2))
    bias = torch.cat([torch.zeros(codes), torch.full((stops,), stop_score)]).double()
    return TokenModel(transformer, embedding, head * 0.5, bias, codes=codes).requires_grad_(False)
