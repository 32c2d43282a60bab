"""Profiles in forms that run without Paretone."""
