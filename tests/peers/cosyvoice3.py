"""Our CosyVoice 3 language model against the official loop, on the same random weights of its size.

No registry has the official code. The loop is that of :mod:`tests.peers.cosyvoice2`, on CosyVoice 3's tables.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from functools import partial

from paretone.bench.masked import require_transformers
from paretone.bench.report import Report
from paretone.models.cosyvoice2.language_model import COSYVOICE_3
from tests.peers import cosyvoice2, language
from tests.peers.cosyvoice2 import TOKENS, add_arguments, peers

__all__ = ["add_arguments"]
NAME = "cosyvoice3"
DEFINITION = cosyvoice2.DEFINITION.replace("CosyVoice 2", "CosyVoice 3")
RELEASED = replace(cosyvoice2.RELEASED, layout=COSYVOICE_3)


def run(arguments: argparse.Namespace) -> Report:
    """Speak the same tokens in both."""
    require_transformers("llasa")
    return language.measure(arguments, partial(peers, RELEASED, arguments.tokens or TOKENS), DEFINITION)
