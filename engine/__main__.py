"""The command ``paretone``; ``python -m engine`` is the same.

Importing the command line takes a moment, in which a signal may come already.
"""

from __future__ import annotations

import signal
import sys


def main() -> int:
    """Run the command line; the process's exit code."""
    came = [signal.SIGINT]

    def interrupt(number: int, frame: object) -> None:
        came.append(signal.Signals(number))
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        from engine.cli import main as command_line
    except KeyboardInterrupt:
        print("Cancelled.", file=sys.stderr)
        return 128 + came[-1]
    finally:
        signal.signal(signal.SIGTERM, before)
    return command_line()


if __name__ == "__main__":
    sys.exit(main())
