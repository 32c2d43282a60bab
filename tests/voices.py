"""The voices that ship with a model, for tests that want one of them, or two, whichever they are."""

from paretone.models.catalogue import voices

FIRST, SECOND = (one.id for one in voices("f5-mini")[:2])
"""Of the bundled flow model."""
