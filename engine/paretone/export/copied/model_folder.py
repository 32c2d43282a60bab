# Copyright 2026 The Paretone authors. Licensed under the Apache License, Version 2.0:
# https://www.apache.org/licenses/LICENSE-2.0
"""Makes a folder of OmniVoice that vLLM-Omni serves with the profile's settings: links to the release's files, and a
config.json with the fields of generation.json. vLLM-Omni reads these settings from the model's configuration.

    python model_folder.py path/to/OmniVoice path/to/new-folder
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
CONFIG = "config.json"


def make(release: Path, folder: Path, fields: Path = HERE / "generation.json") -> None:
    """Make ``folder``, which must not exist. Raises :class:`OSError` or :class:`ValueError`."""
    config = json.loads((release / CONFIG).read_text(encoding="utf-8"))
    changed = config | json.loads(fields.read_text(encoding="utf-8"))
    folder.mkdir(parents=True)
    for one in sorted(release.iterdir()):
        if one.name != CONFIG:
            (folder / one.name).symlink_to(one.resolve())
    (folder / CONFIG).write_text(json.dumps(changed, indent=2) + "\n", encoding="utf-8")


def main() -> int:
    if len(sys.argv) != 3:
        print(__doc__, file=sys.stderr)
        return 2
    release, folder = map(Path, sys.argv[1:])
    try:
        make(release, folder)
    except (OSError, ValueError) as error:
        print(f"{folder} was not made: {error}", file=sys.stderr)
        return 1
    print(f"Made {folder}.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
