"""Maker of the calibration that comes with Paretone: ``python -m tests.tools.example_table``.

After ``python -m tests.tools.example_study``, which makes the example study anew, this repeats the
calibration of its table, with all that was measured on the way: with it the threshold of the example can be changed in
the window without calibrating. It must give the study's table exactly.
"""

import json
import sys
from dataclasses import replace
from datetime import UTC, datetime

from paretone.files import write_atomically
from paretone.measure.machine import describe
from paretone.models.loading import load
from paretone.observer import SILENT
from paretone.studies import definition, example
from paretone.studies.store import Store
from paretone.studies.study import seeded
from paretone.techniques.ditreducio import NAME
from paretone.techniques.ditreducio.preparation import calibrate_model
from paretone_app.features.strategy.state import SHIPPED, record_json


def main() -> None:
    study, folder = definition.read(example.FILE), example.shipped()
    assert folder is not None, "the study is made first"
    candidate = next(one for one in study.candidates if one.setting.technique(NAME) is not None)
    setting = seeded(candidate, study.seeds[0])
    model = load(study.model, "", "", "cpu", SILENT.status, SILENT.check)
    record = calibrate_model(model, study.calibration, setting, SILENT)
    with Store(folder, read_only=True) as store:
        (table,) = store.artefacts().values()
    if record.table.fingerprint != table.fingerprint:
        sys.exit("The calibration gave another table than the study has; make the study anew.")
    SHIPPED.mkdir(exist_ok=True)
    for old in SHIPPED.glob("*.json"):
        old.unlink()
    made = replace(record, created=datetime.now(UTC).isoformat(timespec="milliseconds"), machine=describe().line)
    write_atomically(SHIPPED / f"{made.fingerprint}.json", json.dumps(record_json(made)).encode())
    print(f"Wrote {SHIPPED / made.fingerprint}.json")


if __name__ == "__main__":
    main()
