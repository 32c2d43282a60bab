"""Models of features are free of Qt, so that their maths can be read and tested without a window."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import ModuleType


def modules_without_qt(package: ModuleType) -> set[str]:
    """The names of the modules in ``package``, none of which imports Qt."""
    names = sorted(one.stem for one in Path(str(package.__file__)).parent.glob("*.py") if one.stem != "__init__")
    imports = "; ".join(f"import {package.__name__}.{name}" for name in names)
    code = f"import sys; {imports}; assert not [one for one in sys.modules if one.startswith(('PySide6', 'pyqtgraph'))]"
    subprocess.run([sys.executable, "-c", code], check=True)
    return set(names)
