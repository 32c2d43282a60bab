"""Predicted gain of speculative decoding, from acceptance and the cost of a draft pass. Torch-free.

Source: Leviathan et al., arXiv 2211.17192, section 3.1 to 3.4.
"""

from __future__ import annotations


def expected_tokens(acceptance: float, length: int) -> float:
    """E: tokens of a cycle in which ``length`` tokens are drafted and each is accepted with probability α, the one that
    the target adds included: (1 − α^(K+1)) / (1 − α)."""
    if not 0 <= acceptance <= 1:
        raise ValueError(f"An acceptance of {acceptance:g} is not a probability.")
    return sum(acceptance**step for step in range(length + 1))


def predicted_speed_up(tokens: float, length: float, cost: float, verification: float = 1.0) -> float:
    """E / (v + K·c): predicted speed-up of ``tokens`` per cycle over one by one.

    ``cost`` is c, the time of a draft pass over that of a target pass for one token; ``verification`` is v, the time of
    a target pass over K + 1 tokens over that for one.
    """
    return tokens / (verification + length * cost)
