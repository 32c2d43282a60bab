"""``python -m engine`` is the same as ``paretone``."""

from __future__ import annotations

import sys

from engine.start import main

if __name__ == "__main__":
    sys.exit(main())
