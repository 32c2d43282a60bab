"""Speed of our models against the official implementations: same weights, same output, before any technique.

``--model`` chooses the peer, always at the released model's full size with random weights, on one thread:

* ``f5``: the official package f5-tts, whole sampling of a mel without vocoder; mels equal to rounding;
* ``llasa``: transformers' ``generate`` with a static cache, sampling as LLaSA's card says; the same tokens;
* ``cosyvoice2``: CosyVoice 2's own loop on the Qwen2 of transformers; the same tokens;
* ``omnivoice``: the official package omnivoice, all steps of a canvas; the same codes.

The official packages are installed into separate environments on first use (see ``paretone.bench.official``). Timed
rounds are paired and interleaved, with the official way twice (A/A). On a processor the report also says how much room
is left: the share of our time in products and attention, and their rate against the best measured on this machine in
the same run.

A default run ends within five minutes on two cores without AMX: sizes are those of a short sentence, with fewer tokens
or steps where even two rounds of it would take longer than ``--minutes``, and there are as many rounds as fit into
that. For figures to quote, give a whole sentence and time for it, such
as ``--model llasa --tokens 250 --minutes 45``, ``--model cosyvoice2 --tokens 250 --minutes 20``,
``--model omnivoice --steps 32 --frames 100 --minutes 30`` or ``--steps 7 --frames 450 --minutes 15``.
"""

from __future__ import annotations

import argparse
import json
import subprocess
from importlib import import_module
from pathlib import Path
from types import ModuleType

from paretone.bench import bundled, official
from paretone.bench.report import Report
from paretone.commands.arguments import above_zero
from paretone.errors import PlainError, SettingError

NAME = "peers"
MODELS = ("f5", "llasa", "cosyvoice2", "omnivoice")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of this bench."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--model", default=MODELS[0], choices=MODELS, help="whose peer (default: %(default)s)")
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda or mps (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=9, help="interleaved rounds at most (default: %(default)s)")
    parser.add_argument(
        "--minutes",
        type=above_zero,
        default=3.5,
        help="time for measuring: fewer rounds if they would take longer, but two at least (default: %(default)s)",
    )
    parser.add_argument("--layers", type=int, default=0, help="layers of the full-size model, if not all of them")
    parser.add_argument(
        "--tokens",
        type=int,
        default=0,
        help="llasa, cosyvoice2: tokens to speak (default: 60, 1.2 s of speech; 100, 4 s; fewer on slow machines)",
    )
    parser.add_argument(
        "--steps", type=int, default=0, help="f5, omnivoice: steps (default: 5 of the EPSS grid; 8 or fewer)"
    )
    parser.add_argument(
        "--frames",
        type=int,
        nargs="+",
        default=[],
        help="f5: mel frames, prompt included, 93.75 per second (default: 300); omnivoice: frames of the canvas, 25 "
        "per second (default: 50); the first counts",
    )
    parser.add_argument("--environment", help="folder of the official package's environment (default: the user's own)")
    parser.add_argument("--no-bundled", action="store_true", help="f5: leave the bundled model out")
    parser.add_argument(
        "--plain-products",
        action="store_true",
        help="f5: also measure ours with the processor's own float32 products only, if it has faster ones",
    )


def run(arguments: argparse.Namespace) -> Report:
    """Measure, in the official package's environment where there is one, which is made first if it is missing."""
    for name in ("tokens", "steps", "layers"):
        if getattr(arguments, name) < 0:
            raise SettingError(f"--{name} must be at least 1.")
    if any(frames < 1 for frames in arguments.frames):
        raise SettingError("--frames must be at least 1.")
    module: ModuleType = import_module(f"{__name__}.{arguments.model}")
    package: official.Package | None = getattr(module, "PACKAGE", None)
    place = Path(arguments.environment) if arguments.environment else None
    if package is None or official.inside(place, package):
        report: Report = module.measure(arguments)
        return report
    python = official.environment(bundled.say, place, package)
    command = [str(python), "-m", "paretone", "bench", NAME, "--json", *_options(arguments)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    data = json.loads(done.stdout.splitlines()[-1]) if done.stdout.strip() else {"error": "it ended without a result."}
    if done.returncode:
        raise PlainError(f"The official package's environment could not measure: {data['error']}")
    return Report(**data | {"interval": tuple(data["interval"]), "rows": tuple(data["rows"])})


def _options(arguments: argparse.Namespace) -> list[str]:
    """The options again, for another process."""
    options = ["--model", arguments.model, "--device", arguments.device]
    for name in ("rounds", "minutes", "layers", "tokens", "steps"):
        options += [f"--{name}", str(getattr(arguments, name))]
    options += ["--frames", *map(str, arguments.frames)] if arguments.frames else []
    options += ["--environment", arguments.environment] if arguments.environment else []
    flags = {"--no-bundled": arguments.no_bundled, "--plain-products": arguments.plain_products}
    return [*options, *(flag for flag, wanted in flags.items() if wanted)]
