"""Average-velocity weights in the official class of F5-TTS, by the code of the guide."""

from __future__ import annotations

import pytest

from tests import official


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_the_official_class_with_the_guides_embedding_gives_the_engines_evaluations() -> None:
    found = official.run("tests.engine.techniques.average_velocity.official_class")
    assert len(found["differences"]) == 3
    assert max(found["differences"]) < 1e-4
