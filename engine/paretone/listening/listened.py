"""What listening tests found of a study's settings, for its report. Torch-free."""

from __future__ import annotations

from pathlib import Path

from paretone.errors import PlainError
from paretone.listening.results import scores
from paretone.studies.agreement import Listened


def listened(folder: Path | None = None) -> tuple[Listened, ...]:
    """The scores of all settings that studies may have, from the trials in ``folder`` (by default the user's own); none
    if they cannot be read, which the lab reports."""
    try:
        found = scores(folder)
    except PlainError:
        return ()
    return tuple(
        Listened(one.candidate, one.method, one.mean, one.low, one.high, one.n) for one in found if one.candidate
    )
