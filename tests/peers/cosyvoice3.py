"""Our CosyVoice 3 against the official loops, on the same random weights of its size: language model, and flow.

No registry has the official code. The language model's loop is that of :mod:`tests.peers.cosyvoice2`, on CosyVoice 3's
tables; the flow's is :mod:`tests.peers.cosyvoice3_flow`. For figures to quote of one of them: ``--parts flow --minutes
7``.
"""

import argparse
from dataclasses import replace
from functools import partial

from paretone.bench.masked import require_transformers
from paretone.bench.report import Report
from paretone.models.cosyvoice2.language_model import COSYVOICE_3
from tests.peers import cosyvoice2, cosyvoice3_flow, language
from tests.peers.cosyvoice2 import TOKENS, peers

NAME = "cosyvoice3"
PARTS = LANGUAGE, FLOW, STREAM = "language", "flow", "stream"
DEFINITION = cosyvoice2.DEFINITION.replace("CosyVoice 2", "CosyVoice 3")
RELEASED = replace(cosyvoice2.RELEASED, layout=COSYVOICE_3)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    cosyvoice2.add_arguments(parser)
    parser.add_argument("--parts", choices=PARTS, nargs="+", default=PARTS, help="what is compared (default: all)")


def run(arguments: argparse.Namespace) -> Report:
    """The same tokens, and the same mels of tokens, by both."""
    require_transformers("llasa")
    parts, minutes = arguments.parts, arguments.minutes
    report = None
    if LANGUAGE in parts:
        arguments.minutes = minutes / len(parts)
        report = language.measure(arguments, partial(peers, RELEASED, arguments.tokens or TOKENS), DEFINITION)
    of_flow = [part for part in (FLOW, STREAM) if part in parts]
    if not of_flow:
        assert report is not None
        return report
    flow = cosyvoice3_flow.measure(arguments, [part == STREAM for part in of_flow], minutes * len(of_flow) / len(parts))
    if report is None:
        return flow
    return replace(report, definition=f"{report.definition} {flow.definition}", rows=(*report.rows, *flow.rows))
