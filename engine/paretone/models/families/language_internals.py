"""A passage of a language model, taken apart for profiling."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from paretone.models.families.language_network import Networks
from paretone.models.families.token_decoder import TokenDecoder
from paretone.sampling.autoregressive import Decoding, Request
from paretone.sampling.tokens import TokenSampler
from paretone.setting.plan import LanguagePlan


@dataclass(frozen=True)
class LanguageInternals:
    """The first passage of a synthesis, and what decodes it, for profiling."""

    networks: Networks
    plan: LanguagePlan
    request: Request
    draft_request: Request | None
    """The draft's prompt, if there is a draft."""
    sampler: TokenSampler
    decoding: Decoding
    """The loop, not yet begun."""
    decoder: Callable[[], TokenDecoder]
    """Gives what makes its tokens heard, again."""
    passages: int
    """Total number of passages."""
