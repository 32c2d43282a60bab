"""Studies: many settings on many sentences, with a crash-safe queue, a search, a report. Torch-free, except
:mod:`paretone.studies.execution`, which runs the models."""
