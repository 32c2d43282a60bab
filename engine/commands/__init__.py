"""The commands of the command line, one module each.

A command is a module with ``NAME``, ``SUMMARY``, ``declare(parser)``, which adds its arguments, and ``run(options,
session)``, which has the work done and returns a :class:`engine.commands.result.Result`. Adding a command means adding
its module and naming it in ``COMMANDS``. All of them are torch-free at import: what is heavy is imported on use.
"""

from __future__ import annotations

from engine.commands import (
    calibrate,
    compare,
    download,
    export,
    export_model,
    export_table,
    import_table,
    measure_layers,
    models,
    roofline,
    speak,
    study,
    train,
    transfer,
    view,
)

COMMANDS = (
    models,
    download,
    speak,
    study,
    calibrate,
    transfer,
    compare,
    export,
    export_model,
    export_table,
    import_table,
    measure_layers,
    train,
    view,
    roofline,
)
"""In the order in which the help lists them."""
