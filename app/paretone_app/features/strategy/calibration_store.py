"""The user's calibrations, one JSON file each in the data folder, so that no threshold is ever calibrated twice."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import numpy as np

from paretone.errors import PlainError, ProfileError
from paretone.files import reason, write_atomically
from paretone.reading import read_json
from paretone.sampling.actions import SkipAction
from paretone.setting.compatibility import Compatibility
from paretone.setting.knobs import Values
from paretone.techniques.ditreducio import calibrates_alike
from paretone.techniques.ditreducio.record import CalibrationRecord, Sentence, Trial
from paretone.techniques.ditreducio.table import StrategyTable

SCHEMA_VERSION = 2


class CalibrationStore:
    """Calibrations by fingerprint, newest last. Files that cannot be read are left alone and named in ``problems``."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._records: dict[str, CalibrationRecord] = {}
        self.problems: list[str] = []
        for path in sorted(folder.glob("*.json")):
            try:
                record = read_record(path)
            except PlainError as error:
                self.problems.append(str(error))
                continue
            self._records[record.fingerprint] = record
        self._records = dict(sorted(self._records.items(), key=lambda item: item[1].created))

    def __len__(self) -> int:
        return len(self._records)

    @property
    def records(self) -> tuple[CalibrationRecord, ...]:
        """All calibrations, the oldest first."""
        return tuple(self._records.values())

    def get(self, fingerprint: str) -> CalibrationRecord | None:
        """The calibration called ``fingerprint``."""
        return self._records.get(fingerprint)

    def newest(self, compatibility: Compatibility, knobs: Values) -> CalibrationRecord | None:
        """The latest calibration for ``compatibility`` whose knobs equal ``knobs`` but for the threshold."""
        for record in reversed(self._records.values()):
            if record.table.compatibility == compatibility and calibrates_alike(record.knobs, knobs):
                return record
        return None

    def add(self, record: CalibrationRecord) -> None:
        """Keep ``record``. Raises :class:`ProfileError` when its file cannot be written; it is kept in memory then."""
        self._records[record.fingerprint] = record
        path = self._folder / f"{record.fingerprint}.json"
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            write_record(record, path)
        except OSError as error:
            raise ProfileError(
                f"The calibration could not be written to {path} ({reason(error)}). "
                "It can be used until the window closes."
            ) from error


def write_record(record: CalibrationRecord, path: Path) -> None:
    """Write ``record`` as JSON, whole or not at all. Raises :class:`OSError`."""
    data = {
        "schema": SCHEMA_VERSION,
        "table": record.table.to_json(),
        "knobs": dict(record.knobs),
        "cut": record.cut,
        "trials": [
            [one.phase, one.step, one.layer, one.action.name, one.error, one.accepted, one.errors]
            for one in record.trials
        ],
        "similarities": [[None if np.isnan(one) else float(one) for one in row] for row in record.similarities],
        "sentences": [asdict(one) for one in record.sentences],
        "combine": record.combine,
        "seed": record.seed,
        "created": record.created,
        "machine": record.machine,
    }
    write_atomically(path, json.dumps(data).encode())


def read_record(path: Path) -> CalibrationRecord:
    """Read what :func:`write_record` wrote. Raises :class:`ProfileError` that names the file."""
    try:
        data = read_json(path)
        if data["schema"] != SCHEMA_VERSION:
            raise ProfileError(f"{path} has schema {data['schema']}; this version reads schema {SCHEMA_VERSION}.")
        return CalibrationRecord(
            table=StrategyTable.from_json(data["table"], f"{path}: table"),
            knobs=Values(data["knobs"]),
            cut=float(data["cut"]),
            trials=tuple(
                Trial(
                    phase,
                    int(step),
                    int(layer),
                    SkipAction[action],
                    float(error),
                    bool(accepted),
                    tuple(map(float, errors)),
                )
                for phase, step, layer, action, error, accepted, errors in data["trials"]
            ),
            similarities=np.array(data["similarities"], dtype=float),
            sentences=tuple(Sentence(**one) for one in data["sentences"]),
            combine=str(data["combine"]),
            seed=int(data["seed"]),
            created=str(data["created"]),
            machine=str(data["machine"]),
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ProfileError(
            f"The calibration {path} cannot be read ({error}); delete the file or calibrate again."
        ) from error
