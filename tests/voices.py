"""The voices that ship with a model, for tests that want one of them, or two, whichever they are."""

from paretone.models.catalogue import voices


def voice_names(model: str = "f5-mini") -> tuple[str, ...]:
    """Their ids; the first is the usual one."""
    return tuple(one.id for one in voices(model))


FIRST, SECOND = voice_names()[:2]
"""Of the bundled flow model."""
