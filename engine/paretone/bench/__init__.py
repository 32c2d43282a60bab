"""Side-by-side benchmarks. Each is a module with ``NAME``, ``run(arguments) -> Report`` and a first docstring line that
says what it measures; it may have ``add_arguments(parser)`` for its own options, passed to ``run`` in ``arguments`` (an
:class:`argparse.Namespace`). To add a bench, add its module and name it in its technique's ``benches`` or, without a
technique, in ``BENCHES``.

Only the report goes to standard output, so that ``--json`` can be piped; progress goes to standard error.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

from paretone.by_name import by_name
from paretone.commands import output
from paretone.commands.arguments import Parser
from paretone.errors import PlugInError, SettingError
from paretone.setting.plan import attempted, described
from paretone.techniques import techniques
from paretone.techniques.registry import plug_in, report_taken

BENCHES: dict[str, str] = {
    "omnivoice": "paretone.bench.omnivoice",
    "stacked": "paretone.bench.stacked",
    "throughput": "paretone.bench.throughput",
    "voices": "paretone.bench.voices",
}
"""Modules of the benches without a technique, by name; imported on use, as they import torch."""
MOVED = ("calibration", "faults", "omnivoice-card", "omnivoice-exact", "own-voices", "peers", "study-scale")
"""Former benches, which measure our implementation rather than a user's machine and models: now of ``tests.peers``."""
LEAST_ROUNDS = 2
"""Minimum number of rounds: one round gives no interval."""


def benches() -> dict[str, str]:
    """Modules of all benches by name, those of the techniques first."""
    found = {}
    for technique in techniques():
        for name, module in technique.benches:
            if name in BENCHES:
                report_taken(technique, "bench", name)
            found[name] = module
    return found | BENCHES


def bench(name: str, known: Mapping[str, str] | None = None) -> ModuleType:
    """Module of a bench, by default among all. Raises :class:`SettingError` with a suggestion or the list, and
    :class:`PlugInError` for an invalid one of a plug-in."""
    if known is None and name in MOVED:
        command = f"python -m tests.peers {name}".removesuffix(" peers")
        raise SettingError(
            f"The bench {name!r} has moved: in a clone of Paretone's repository, run {command} from its root."
        )
    target = by_name(name, known or benches(), "bench", "benches")
    owner = next((plug_in(one.name) for one in techniques() if (name, target) in one.benches), "")
    found, error = attempted(import_module, target)
    if error is not None:
        if not owner:
            raise error
        raise PlugInError(f"The bench {name!r} failed ({described(error, target)}); mend {owner}.") from error
    if owner and not callable(getattr(found, "run", None)):
        raise PlugInError(f"The bench {name!r} in {target} has no function run(arguments); mend {owner}.")
    return found


def summary(module: str) -> str:
    """First line of a bench's docstring, read without importing it; ``""`` without source."""
    spec = find_spec(module)
    # Not tested by class: the packaged program's loader belongs to none.
    read = getattr(spec.loader, "get_source", None) if spec is not None else None
    source = read(module) if read is not None else None
    docstring = ast.get_docstring(ast.parse(source or "")) or ""
    return docstring.partition("\n")[0]


def main(
    argv: Sequence[str],
    program: str = "paretone bench",
    known: Mapping[str, str] | None = None,
    about: str = "Side-by-side benchmarks.",
) -> int:
    """Run the bench named by ``argv`` and print its report, or list the benches if it names none; ``known``: the
    benches of ``program``, by default all; ``about``: its help.

    Returns the exit code. Raises :class:`paretone.errors.PlainError` if the bench cannot run.
    """
    parser = Parser(prog=program, description=about)
    parser.add_argument(
        "name", nargs="?", metavar="BENCH", help="bench to run, followed by its options; omit to list all"
    )
    name = parser.parse_args(argv[:1]).name
    if name is None:
        listed = known or benches()
        width = max(map(len, listed)) + 2
        for name, module in listed.items():
            output.show(f"{name:<{width}}{summary(module)}")
        return 0
    found = bench(name, known)
    parser = Parser(prog=f"{program} {name}", description=found.__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of a table")
    if hasattr(found, "add_arguments"):
        found.add_arguments(parser)
    arguments = parser.parse_args(argv[1:])
    if (rounds := getattr(arguments, "rounds", LEAST_ROUNDS)) < LEAST_ROUNDS:
        raise SettingError(
            f"{rounds} round{'s' * (rounds != 1)} cannot show how much rounds differ, and what differs by "
            f"no more must not be reported: give --rounds {LEAST_ROUNDS} or more."
        )
    report = found.run(arguments)
    output.show(report.to_json() if arguments.json else report.to_text())
    return 0
