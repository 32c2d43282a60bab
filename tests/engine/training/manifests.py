"""Writing manifests of recordings, with all their columns."""

import csv
from collections.abc import Sequence
from pathlib import Path

from paretone.training.manifest import OPTIONAL, REQUIRED, TRAIN, VALIDATION, ManifestRow


def write_manifest(path: Path, rows: Sequence[ManifestRow]) -> Path:
    """Write ``rows``, whose recordings lie in the folder of ``path``; returns that."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*REQUIRED, *OPTIONAL])
        for row in rows:
            phones = " ".join(f"{phone}:{end:.4f}" for phone, _, end in row.phones)
            which = VALIDATION if row.held_out else TRAIN
            writer.writerow([row.audio.relative_to(path.parent), row.text, phones, row.voice, which])
    return path
