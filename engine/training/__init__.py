"""Trainings for users: CFG-free weights, drafts and students, from a manifest of recordings or from a model's own
speech.

A :class:`engine.training.recipe.Recipe` makes steps, validates and exports; a
:class:`engine.training.session.TrainingSession` runs it within a budget, logs it and keeps checkpoints. How the bundled
models are made: :mod:`engine.training.recipes`.
"""
