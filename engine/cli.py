"""The command line: the second front end. ``paretone --help`` says what there is.

Results go to standard output, everything else to standard error. Reading the arguments imports nothing heavy; what a
command needs, it imports itself.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterable, Sequence

from engine import __version__, errors, failures
from engine.errors import Cancelled, PlainError
from engine.knobs import Choice, Knob, Number, Switch
from engine.models.catalogue import MODELS, VOICE_TITLES
from engine.techniques import TECHNIQUES, ditreducio
from engine.terminal import Terminal, cancelling

CANCELLED = 130
"""Exit code after Ctrl-C, as shells have it."""
DEVICES = ("auto", "cpu", "cuda", "mps")
DEFAULT_MODEL = MODELS[0].id
DEFAULT_VOICE = next(iter(VOICE_TITLES))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the process's exit code."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    as_json = "--json" in arguments
    try:
        if arguments[:1] == ["bench"]:
            # Benches declare options of their own, which are known only once the bench is.
            from engine import bench

            return bench.main(arguments[1:])
        return _run(parser().parse_args(arguments))
    except (Cancelled, KeyboardInterrupt):
        return _failed("Cancelled.", "Cancelled", CANCELLED, as_json)
    except PlainError as error:
        return _failed(str(error), type(error).__name__, error.exit_code, as_json)
    except BrokenPipeError:
        # Whoever read the output has stopped; Python would complain once more when it closes the stream.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        sys.stderr.write(failures.details(error))
        sentence = failures.sentence(error, f"running {arguments[0] if arguments else 'paretone'}")
        return _failed(sentence, type(error).__name__, PlainError.exit_code, as_json)


def _run(options: argparse.Namespace) -> int:
    with cancelling() as cancelled:
        terminal = Terminal(cancelled, quiet=options.quiet)
        try:
            result = options.command(options, terminal)
        finally:
            terminal.clear()
    if options.json:
        print(json.dumps(result.data, allow_nan=False))
    elif result.text:
        # A Windows pipe may know fewer letters than people write.
        encoding = sys.stdout.encoding or "utf-8"
        print(result.text.encode(encoding, "replace").decode(encoding))
    return 0


def _failed(sentence: str, kind: str, code: int, as_json: bool) -> int:
    if as_json:
        print(json.dumps({"error": sentence, "kind": kind, "exit_code": code}))
    print(sentence, file=sys.stderr)
    return code


# --- Arguments --------------------------------------------------------------------------------------------------------
def parser() -> argparse.ArgumentParser:
    """What the command line understands."""
    from engine import commands

    top = argparse.ArgumentParser(
        prog="paretone",
        description="Accelerate text-to-speech, and see and hear what it costs.",
        epilog=_exit_codes(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action="version", version=f"paretone {__version__}")
    names = top.add_subparsers(title="commands", metavar="COMMAND", required=True)

    one = _command(names, "models", "List models, voices and techniques, with licences.", commands.models)

    one = _command(names, "speak", "Synthesise a text under a profile or a setting.", commands.speak)
    _add_setting(one, profile=True)
    _add_text(one)
    one.add_argument("--out", required=True, metavar="FILE", help="WAV file to write (32-bit float, mono)")

    one = _command(
        names,
        "calibrate",
        "Calibrate DiTReducio on one sentence and write what came out, with evidence.",
        commands.calibrate,
    )
    _add_setting(one, profile=False)
    _add_knobs(one.add_argument_group("DiTReducio"), ditreducio.TECHNIQUE.knobs)
    _add_text(one, required=False)
    written = one.add_argument_group("what to write, at least one")
    written.add_argument("--profile", metavar="FILE", help="profile: setting, table and evidence")
    written.add_argument("--table", metavar="FILE", help="strategy table with what it belongs to")
    written.add_argument("--official", metavar="FILE", help="strategy table in the form of the official code")
    one.add_argument("--no-evidence", action="store_true", help="do not measure speed and fidelity afterwards")

    one = _command(
        names,
        "compare",
        "Synthesise under two settings in turn; print speed and fidelity, write both.",
        commands.compare,
        epilog="A side is a profile (FILE.json), 'baseline' (the other side without techniques), or options such as "
        "'steps=16,guidance=1.5', of which table=FILE engages DiTReducio.",
    )
    one.add_argument("a", metavar="A", help="the reference")
    one.add_argument("b", metavar="B", help="what is compared with it")
    _add_model(one)
    _add_text(one, required=False)
    one.add_argument("--out", metavar="FOLDER", help="write a.wav and b.wav there")
    one.add_argument(
        "--rounds", type=_positive, default=5, help="interleaved rounds of measurement (default: %(default)s)"
    )

    names.add_parser("bench", help="Run a side-by-side benchmark; without a name, list them.", add_help=False)

    one = _command(
        names, "export-table", "Write a profile's strategy table in the official form.", commands.export_table
    )
    one.add_argument("profile", metavar="PROFILE", help="profile to read")
    one.add_argument("--out", required=True, metavar="FILE", help="official table to write")

    one = _command(
        names,
        "import-table",
        "Make a profile of an official strategy table, which itself does not say what it belongs to.",
        commands.import_table,
    )
    one.add_argument("table", metavar="TABLE", help="official table to read ({steps}_{threshold}.json)")
    _add_setting(one, profile=False)
    _add_knobs(one.add_argument_group("DiTReducio, as it was calibrated"), ditreducio.TECHNIQUE.knobs)
    one.add_argument("--out", required=True, metavar="FILE", help="profile to write")
    return top


def _command(names: argparse._SubParsersAction, name: str, summary: str, run: object, **more: object):
    one = names.add_parser(name, help=summary, description=summary, **more)
    one.add_argument("--json", action="store_true", help="print one JSON object and nothing else on standard output")
    one.add_argument("--quiet", action="store_true", help="show no progress")
    one.set_defaults(command=run)
    return one


def _add_model(one: argparse.ArgumentParser) -> None:
    group = one.add_argument_group("model")
    group.add_argument("--model", metavar="ID", help=f"model of the catalogue (default: {DEFAULT_MODEL})")
    group.add_argument("--folder", default="", help="folder with the checkpoint, where it is not in its usual place")
    group.add_argument("--variant", default="", help="architecture, where neither folder nor sidecar tells it")
    group.add_argument("--device", choices=DEVICES, default="auto", help="where to run (default: %(default)s)")


def _add_setting(one: argparse.ArgumentParser, profile: bool) -> None:
    _add_model(one)
    if profile:
        group = one.add_argument_group("acceleration")
        group.add_argument("--profile", metavar="FILE", help="profile to run; gives model, options and table")
        group.add_argument("--technique", choices=[each.name for each in TECHNIQUES], help="technique to engage")
        group.add_argument("--table", metavar="FILE", help="its strategy table, Paretone's or the official form")
        (branch_skip,) = (knob for knob in ditreducio.TECHNIQUE.knobs if knob.name == "branch_skip")
        _add_knobs(group, [branch_skip])
    knobs = {knob.name: knob for model in MODELS for knob in model.options}
    _add_knobs(one.add_argument_group("sampler"), knobs.values())
    one.add_argument("--seed", type=_seed, help="seed of the noise (default: the profile's, else 0)")


def _add_knobs(group: argparse._ArgumentGroup, knobs: Iterable[Knob]) -> None:
    """One option for every knob. Ranges are checked with the setting, where the model's own apply."""
    for knob in knobs:
        kinds: dict[str, object] = {"dest": knob.name, "default": argparse.SUPPRESS, "help": _escaped(knob.meaning)}
        match knob:
            case Switch():
                kinds["action"] = argparse.BooleanOptionalAction
            case Choice():
                kinds["choices"] = knob.values
            case Number():
                kinds |= {"type": int if knob.whole else float, "metavar": knob.symbol or "N"}
        group.add_argument(f"--{knob.name.replace('_', '-')}", **kinds)


def _add_text(one: argparse.ArgumentParser, required: bool = True) -> None:
    group = one.add_argument_group("speech")
    text = group.add_mutually_exclusive_group(required=required)
    text.add_argument("--text", help="what to say" + ("" if required else " (default: a sample sentence)"))
    text.add_argument("--text-file", metavar="FILE", help="file with the text, UTF-8; - for standard input")
    group.add_argument(
        "--voice",
        help=f"shipped voice ({', '.join(VOICE_TITLES)}) or a recording (default: the profile's, else {DEFAULT_VOICE})",
    )
    group.add_argument("--transcript", default="", help="what is said in the recording")


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return value


def _seed(text: str) -> int:
    value = int(text)
    if not 0 <= value < 2**63:
        raise argparse.ArgumentTypeError("must lie between 0 and 2**63 - 1")
    return value


def _escaped(text: str) -> str:
    """argparse formats help texts with %."""
    return text.replace("%", "%%")


def _exit_codes() -> str:
    meanings = {0: "Done.", CANCELLED: "Cancelled with Ctrl-C."}
    kinds = [PlainError, *(kind for kind in vars(errors).values() if _is_plain_error(kind) and kind is not PlainError)]
    for kind in kinds:
        meanings[kind.exit_code] = (kind.__doc__ or "").partition("\n")[0].partition(";")[0].rstrip(".") + "."
    meanings[errors.SettingError.exit_code] += " Also: arguments that make no sense."
    lines = [f"  {code:>3}  {meaning}" for code, meaning in sorted(meanings.items())]
    return "\n".join(["exit codes:", *lines])


def _is_plain_error(kind: object) -> bool:
    return isinstance(kind, type) and issubclass(kind, PlainError)


if __name__ == "__main__":
    sys.exit(main())
