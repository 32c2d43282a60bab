"""Studies: many settings on many sentences, with a queue that survives crashes, a search, a report. Torch-free, but for
:mod:`paretone.studies.execution`, which runs the models."""
