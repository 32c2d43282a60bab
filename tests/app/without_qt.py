"""What features work out is free of Qt, so that it can be read and tested without a window."""

import subprocess
import sys


def import_without_qt(*modules: str) -> None:
    """Import ``modules`` in another process, and fail if that imports Qt."""
    code = (
        f"import importlib, sys; [importlib.import_module(one) for one in {modules!r}]; "
        "assert not [one for one in sys.modules if one.startswith(('PySide6', 'pyqtgraph'))]"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
