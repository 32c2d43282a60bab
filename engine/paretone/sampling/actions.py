"""Actions of a layer at a step: compute, reuse or share. Torch-free."""

from __future__ import annotations

from enum import IntEnum


class SkipAction(IntEnum):
    """Action of a layer at a step. Official strategy tables write these names."""

    NONE = 0
    """Compute both modules for all branches."""
    TS = 1
    """Temporal skipping: both modules return what they returned at the last step that computed them."""
    BS = 2
    """Branch skipping: compute branch 0; the others follow by their last residual."""
