"""The programs that profiles are exported for, one file for each, with a ``TARGET``; listed in
:mod:`paretone.export.targets`."""
