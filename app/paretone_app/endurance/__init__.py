"""Endurance: hours in the real window, with what the process holds read after every round. ``python -m
paretone_app.endurance`` runs it; ``resources/docs/endurance.md`` says what is done and what passes."""
