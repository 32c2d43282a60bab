"""What a loaded model says of itself, where none is loaded."""

from dataclasses import replace

from paretone.models.base import ModelInfo

FLOW = ModelInfo(
    "f5-mini", "Small", "flow", "small", "here", "0" * 64, "none", "cpu", "float32", 24000, 4, 2, 9, "test"
)
LANGUAGE = replace(FLOW, id="lm-mini", title="LM mini", family="language", branches=1)
