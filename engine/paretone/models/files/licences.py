"""The licences of checkpoints, by their SPDX identifiers. Torch-free."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

NON_COMMERCIAL = "CC-BY-NC-4.0"
MIT = "MIT"
APACHE = "Apache-2.0"
HIGGS = "LicenseRef-Boson-Higgs-Audio-2-Community"


@dataclass(frozen=True)
class Licence:
    """A licence in a few words, and where it can be read."""

    summary: str
    link: str


LICENCES: Mapping[str, Licence] = {
    NON_COMMERCIAL: Licence(
        "use, share and adapt with attribution, for non-commercial purposes only.",
        "https://creativecommons.org/licenses/by-nc/4.0/",
    ),
    MIT: Licence("use for any purpose; keep the copyright notice.", "https://opensource.org/license/mit"),
    APACHE: Licence(
        "use for any purpose; keep the notices and say what was changed.", "https://www.apache.org/licenses/LICENSE-2.0"
    ),
    HIGGS: Licence(
        "use for any purpose with attribution to Boson AI; above 100,000 users a year, only with their consent.",
        "https://huggingface.co/bosonai/higgs-audio-v2-tokenizer",
    ),
}
"""By their SPDX identifier."""
