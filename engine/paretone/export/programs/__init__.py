"""Programs that profiles are exported for, one file each, with a ``TARGET``; listed in
:mod:`paretone.export.targets`."""
