"""Trainings for users: CFG-free weights, drafts and students, from a manifest of recordings or from a model's own
speech.

A :class:`paretone.training.session.Recipe` makes steps, validates and exports; a
:class:`paretone.training.session.TrainingSession` runs it within a budget, logs it and keeps checkpoints. How the
bundled models are made: :mod:`paretone.training.recipes`."""
