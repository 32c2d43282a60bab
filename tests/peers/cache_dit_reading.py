"""Run where the real cache-dit is: what ``cache_dit.load_configs`` makes of exported configurations; prints JSON.

Arguments are files: YAML as it is, JSON as what a server puts under ``cache_config``.
"""

import json
import sys
from pathlib import Path

output, sys.stdout = sys.stdout, sys.stderr
import cache_dit  # noqa: E402


def read(path: Path) -> dict[str, object]:
    """The fields of ``DBCacheConfig``, and the order of the calibrator."""
    given = str(path) if path.suffix == ".yaml" else {"cache_config": json.loads(path.read_text())}
    found = cache_dit.load_configs(given)
    calibrator = found["calibrator_config"]
    fields = {
        name: value
        for name, value in vars(found["cache_config"]).items()
        if isinstance(value, int | float | list | str)
    }
    return {**fields, "taylorseer_order": calibrator.taylorseer_order if calibrator else 0}


print(json.dumps([read(Path(name)) for name in sys.argv[1:]]), file=output)
