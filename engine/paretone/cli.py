"""The command line, the second front end; see ``paretone --help``. Results go to standard output, everything else to
standard error. Parsing the arguments imports nothing heavy; each command imports what it needs."""

from __future__ import annotations

import argparse
import contextlib
import json
import shlex
import sys
from collections.abc import Callable, Sequence

from paretone import __version__, errors, files, own_process
from paretone.commands import output
from paretone.commands.arguments import ArgumentsError, Parser
from paretone.commands.terminal import Session, Terminal, cancelling, exit_code, terminable
from paretone.errors import Cancelled, CheckpointError, PlainError

CANCELLED, TERMINATED, HUNG_UP = Cancelled.exit_code, 143, 129
"""Exit codes after Ctrl-C, after SIGTERM and once the terminal is closed (SIGHUP), as in shells."""


def main(arguments: Sequence[str] | None = None, call: Callable[[list[str]], int] | None = None) -> int:
    """Run one command; returns the process's exit code. ``call``: replacement for other programs."""
    with terminable():
        return _answered(list(sys.argv[1:] if arguments is None else arguments), call or _called)


def _answered(arguments: list[str], call: Callable[[list[str]], int]) -> int:
    # Before parsing, and possibly abbreviated.
    as_json = any(len(one) > len("--") and "--json".startswith(one) for one in arguments)
    try:
        own_process.cap_threads()
        output.prepare()
        if not {"-h", "--help", "--version"} & set(arguments):
            own_process.require_working_folder()
        return call(arguments)
    except ArgumentsError as error:
        sys.stderr.write(error.usage)
        return _failed(str(error), type(error).__name__, error.exit_code, as_json)
    except (Cancelled, KeyboardInterrupt) as interruption:
        code = exit_code(interruption.signal if isinstance(interruption, Cancelled) else 0)
        return _failed(str(interruption) or "Cancelled.", "Cancelled", code, as_json)
    except PlainError as error:
        sentence = str(error)
        if isinstance(error, CheckpointError) and error.candidates:
            sentence = f"{sentence} Here: {' or '.join(f'--variant {name}' for name in error.candidates)}."
        sys.stderr.write(errors.details(error))
        if isinstance(error, CheckpointError) and error.files:
            sentence = f"{sentence} Type one of: {' or '.join(f'--folder {shlex.quote(one)}' for one in error.files)}."
        if error.lacks_transcript:
            sentence = f"{sentence} Give its words with --voice RECORDING --transcript WORDS."
        if error.command:
            sentence = f"{sentence} Type: {error.command}"
        return _failed(sentence, type(error).__name__, error.exit_code, as_json)
    except BrokenPipeError:
        # The reader of the output has stopped.
        output.abandon()
        return 0
    except SystemExit:
        raise
    except BaseException as error:  # Plug-ins may raise their own kinds.
        sys.stderr.write(errors.details(error))
        sentence = errors.sentence(error, f"running {arguments[0] if arguments else 'paretone'}")
        return _failed(sentence, type(error).__name__, PlainError.exit_code, as_json)


def _called(arguments: list[str]) -> int:
    if arguments[:1] == ["bench"]:
        # Options depend on the bench, which declares them.
        from paretone import bench

        return bench.main(arguments[1:])
    name = next((one for one in arguments if not one.startswith("-")), "")
    return carry_out(parser(name).parse_args(arguments))


def carry_out(options: argparse.Namespace) -> int:
    """Run the command of the parsed ``options`` and print its result; returns the exit code."""
    with cancelling() as cancelled:
        terminal = Terminal(cancelled, quiet=options.quiet)
        try:
            with files.waiting_for_readers(terminal.wait):
                result = options.run(options, Session(terminal))
        finally:
            terminal.clear()
    if options.json:
        output.show(json.dumps(result.data, allow_nan=False))
    elif result.text:
        output.show(result.text)
    if result.problem:
        print(result.problem, file=sys.stderr)
    return result.exit_code


def _failed(sentence: str, kind: str, code: int, as_json: bool) -> int:
    if as_json:
        # If this fails as well, the exit code and standard error remain.
        with contextlib.suppress(PlainError, BrokenPipeError):
            output.show(json.dumps({"error": sentence, "kind": kind, "exit_code": code}))
    print(sentence, file=sys.stderr)
    return code


# --- Arguments --------------------------------------------------------------------------------------------------------
def parser(name: str | None = None) -> argparse.ArgumentParser:
    """Parser of the command line. With ``name``, only that command gets its arguments: declaring all takes longer."""
    from paretone.commands import commands

    what, form = "Accelerate text-to-speech and measure what that costs.", argparse.RawDescriptionHelpFormatter
    top = Parser(prog="paretone", description=what, epilog=_exit_codes(), formatter_class=form)
    top.add_argument("--version", action="version", version=f"paretone {__version__}")
    names = top.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in commands():
        one = names.add_parser(command.name, help=command.summary, description=command.summary)
        if name not in (None, command.name):
            continue
        one.add_argument("--json", action="store_true", help="print only one JSON object on standard output")
        one.add_argument("--quiet", action="store_true", help="show no progress")
        one.set_defaults(run=command.run)
        command.declare(one)
    names.add_parser("bench", help="Run a benchmark; without a name, list all.", add_help=False)
    return top


def _exit_codes() -> str:
    meanings = {0: "Done.", HUNG_UP: "Cancelled as its terminal was closed (SIGHUP)."}
    meanings |= {CANCELLED: "Cancelled with Ctrl-C.", TERMINATED: "Cancelled by SIGTERM."}
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, PlainError)]
    for kind in kinds:
        meanings[kind.exit_code] = (kind.__doc__ or "").partition("\n")[0].partition(";")[0].rstrip(".") + "."
    meanings[errors.SettingError.exit_code] += " Also: invalid arguments."
    lines = [f"  {code:>3}  {meaning}" for code, meaning in sorted(meanings.items())]
    return "\n".join(["exit codes:", *lines])


if __name__ == "__main__":
    sys.exit(main())
