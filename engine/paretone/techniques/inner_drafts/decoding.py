"""Frames drafted ahead, as :mod:`paretone.techniques.inner_drafts` plans them."""

from __future__ import annotations

from paretone.models.families.language_network import DecodingLoop
from paretone.sampling.autoregressive import Decoding
from paretone.sampling.frame_speculation import speculate_frames
from paretone.sampling.verification import by_token


def ahead(loop: DecodingLoop, layers: int, most: int) -> Decoding:
    """See :attr:`paretone.setting.plan.LanguagePlan.decoding`."""
    draft, rule = loop.target.kept(range(layers)), by_token(0.0, loop.target.codes)
    return speculate_frames(loop.target, draft, loop.request, loop.sampler, loop.uniforms, rule, most, loop.check)
