"""The command ``paretone``; ``python -m paretone`` is the same.

During the import of the command line (some tenths of a second), signals already end the process with the later message
and exit code (:mod:`paretone.commands.terminal`).
"""

from __future__ import annotations

import os
import signal
import sys

from paretone.own_process import SIGNALS


def main() -> int:
    """Run the command line; returns the process's exit code."""
    handled = [number for number in SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
    for number in handled:
        signal.signal(number, _leave)
    from paretone import cli

    code = cli.main()
    for number in handled:
        # Nothing is left to cancel.
        signal.signal(number, signal.SIG_DFL)
    return code


def _leave(number: int, frame: object) -> None:
    """End the process at once: nothing has begun, and an exception during an import may be lost."""
    code = 128 + number
    try:
        if any(len(one) > len("--") and "--json".startswith(one) for one in sys.argv[1:]):
            os.write(1, f'{{"error": "Cancelled.", "kind": "Cancelled", "exit_code": {code}}}\n'.encode())
        os.write(2, b"Cancelled.\n")
    finally:  # Also if standard output or standard error is closed.
        os._exit(code)


if __name__ == "__main__":
    sys.exit(main())
