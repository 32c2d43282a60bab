"""Why the bundled language model speaks in its own voices only. Torch-free."""

from __future__ import annotations

from collections.abc import Sequence


def no_mean_mel(recording: str, title: str, voices: Sequence[str]) -> str:
    """That the model cannot speak as in ``recording``."""
    return (
        f"{title} cannot speak as in {recording!r}: its decoder has to know the mean spectrum of much of a voice's "
        f"speech, which one recording does not give. Choose one of its own voices ({', '.join(voices)}), or another "
        "model."
    )
