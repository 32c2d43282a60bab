"""Side-by-side benchmarks. Each is a module with ``NAME``, ``run(arguments) -> Report`` and a first docstring line that
says what it measures; it may have ``add_arguments(parser)`` for its own options, which ``run`` then finds in
``arguments`` (an :class:`argparse.Namespace`). Adding a bench means adding its module and naming it in its
technique's ``benches`` or, if it is of none, in ``BENCHES``.

Nothing is printed to standard output but the report, so that ``--json`` can be piped; benches write progress to
standard error.
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
from paretone.techniques.registry import plug_in, registry

BENCHES: dict[str, str] = {
    "omnivoice": "paretone.bench.omnivoice",
    "omnivoice-card": "paretone.bench.omnivoice_card",
    "omnivoice-exact": "paretone.bench.omnivoice_exact",
    "stacked": "paretone.bench.stacked",
    "voices": "paretone.bench.voices",
}
"""Module of each bench that belongs to no technique, by name. Modules are imported on use only: they import torch."""
MOVED = {
    "own-voices": "python -m tests.peers own-voices",
    "peers": "python -m tests.peers",
    "study-scale": "python -m tests.peers study-scale",
}
"""Former benches, of our implementation rather than of a user's machine and models, and the commands that they are."""
LEAST_ROUNDS = 2
"""Fewest rounds of a bench that measures in rounds: one round gives no interval."""


def benches() -> dict[str, str]:
    """Module of each bench, those of the techniques first, by name."""
    found = {}
    for technique in techniques():
        for name, module in technique.benches:
            if name in BENCHES:
                registry().report(
                    f"{technique.title}: its bench {name!r} was left out: there is one of that name; rename it."
                )
            found[name] = module
    return found | BENCHES


def bench(name: str, known: Mapping[str, str] | None = None) -> ModuleType:
    """The module of a bench, by default of all of ours. Raises :class:`SettingError` that suggests one or lists them,
    and :class:`PlugInError` for a plug-in's that is none."""
    if known is None and name in MOVED:
        raise SettingError(
            f"The bench {name!r} has moved: in a clone of Paretone's repository, run {MOVED[name]} from its root."
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
    """The first line of a bench's docstring, read without importing it; ``""`` if there is no source."""
    spec = find_spec(module)
    # Not by its class: the loader of the packaged program is of none.
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
    """Run the bench that ``argv`` names and print its report, or list the benches when it names none; ``program`` runs
    those ``known``, by default all of ours, and its help says what it is ``about``.

    Returns the exit code. Raises :class:`paretone.errors.PlainError` when the bench cannot run.
    """
    parser = Parser(prog=program, description=about)
    parser.add_argument(
        "name",
        nargs="?",
        metavar="BENCH",
        help="bench to run, followed by its options; omit to list all",
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
