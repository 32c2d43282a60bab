"""Programs that profiles are exported for, one file each, with a ``TARGET``: see :mod:`paretone.export.targets`."""
