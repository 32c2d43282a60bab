"""The model of the trade-off view is imported without Qt."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import app.features.tradeoff.model as model


def test_no_module_of_the_model_imports_qt() -> None:
    names = sorted(one.stem for one in Path(model.__file__).parent.glob("*.py") if one.stem != "__init__")
    assert {"axes", "points", "scene", "studies", "known_points"} <= set(names)
    imports = "; ".join(f"import {model.__name__}.{name}" for name in names)
    code = f"import sys; {imports}; assert not [one for one in sys.modules if one.startswith(('PySide6', 'pyqtgraph'))]"
    subprocess.run([sys.executable, "-c", code], check=True)
