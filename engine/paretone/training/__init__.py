"""Training by users: CFG-free weights, drafts and students, from a manifest of recordings or from the model's own
speech.

A :class:`paretone.training.session.Recipe` makes steps, validates and exports; a
:class:`paretone.training.session.TrainingSession` runs it within a budget, logs it and keeps checkpoints.
"""
