"""Functions that carry out the commands of :mod:`paretone.session.commands`, one module for each kind.

Each is a function ``(command, executor, job) -> Event | None``: it does what the command says with the executor's
model, reports to the job on the way, and returns the event that says what came of it. It raises what goes wrong, and
:class:`paretone.errors.Cancelled` soon after the job was cancelled.
"""
