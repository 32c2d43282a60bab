"""Comparisons for those who work on Paretone, from the repository's root: python -m tests.peers NAME.

The official implementations are run at the released models' full size with random weights, on one thread, and must
give the same output. The official packages are installed into separate environments on first use. Timed rounds are
paired and interleaved, with the official way twice (A/A). On a processor the report also says how much room is left:
the share of our time in products and attention, and their rate against the best measured on this machine in the same
run.

A default run ends within five minutes on two cores without AMX: sizes are those of a short sentence, with fewer tokens
or steps where even two rounds would take longer than --minutes, and there are as many rounds as fit into that. For
figures to quote, give a whole sentence and time for it: "llasa --tokens 250 --minutes 45", "cosyvoice2 --tokens 250
--minutes 20", "omnivoice --steps 32 --frames 100 --minutes 30", "f5 --steps 7 --frames 450 --minutes 15".
"""

import sys
from collections.abc import Sequence

from paretone import bench, cli

PEERS = {
    "calibration": "tests.peers.calibration",
    "f5": "tests.peers.f5",
    "llasa": "tests.peers.llasa",
    "cosyvoice2": "tests.peers.cosyvoice2",
    "cosyvoice3": "tests.peers.cosyvoice3",
    "omnivoice": "tests.peers.omnivoice",
    "qwen3-tts": "tests.peers.qwen3_tts",
    "faults": "tests.peers.faults",
    "omnivoice-exact": "tests.peers.omnivoice_exact",
    "omnivoice-card": "tests.peers.omnivoice_card",
    "own-voices": "tests.peers.own_voices",
    "study-scale": "tests.peers.study_scale",
    "load-client": "tests.peers.load_client",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the comparison that the arguments name; the process's exit code."""
    return cli.main(arguments, lambda given: bench.main(given, "python -m tests.peers", PEERS, __doc__))


if __name__ == "__main__":
    sys.exit(main())
