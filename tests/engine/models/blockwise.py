"""Small backbones prepared as large ones are."""

from __future__ import annotations

import pytest

from paretone.models.kernels import products
from paretone.models.networks.diffusion import DiffusionTransformer


def prepare(backbone: DiffusionTransformer, prepared: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave ``backbone`` ``plain``, have it ``fused``, or fused so that its layers run ``by blocks`` of a few rows."""
    if prepared == "by blocks":
        if not products.available():
            pytest.skip("this build of torch cannot pack weights")
        monkeypatch.setattr(products, "NARROWEST", 1)
        monkeypatch.setattr(products, "ROWS", 8)
        monkeypatch.setattr(products, "FEED_FORWARD_ROWS", 16)
    if prepared != "plain":
        backbone.fuse()
    packed = {module.is_packed(backbone.final_norm.linear.weight) for module in backbone.block(0)[1:]}
    assert packed == {prepared == "by blocks"}
