"""Owners for what pyqtgraph leaves without one.

Every plot makes a context menu and a widget group that no widget owns. When their window is gone, Python's collector
finds them, on whichever thread it happens to run; the engine's thread runs it after every job. Destroying widgets there
while this thread restyles all widgets crashes Qt, so they are given to the plot's own view and go with it.
"""

from __future__ import annotations

import pyqtgraph as pg
from PySide6.QtWidgets import QWidget


def adopt_menus(panel: QWidget) -> None:
    """Let the view of every plot in ``panel`` own its menus."""
    for view in panel.findChildren(pg.GraphicsView):
        for item in view.scene().items():
            if isinstance(item, pg.PlotItem):
                item.ctrlMenu.setParent(view, item.ctrlMenu.windowFlags())
                item.stateGroup.setParent(view)
            elif isinstance(item, pg.ViewBox) and item.menu is not None:
                item.menu.setParent(view, item.menu.windowFlags())
