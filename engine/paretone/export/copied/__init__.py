"""Modules copied into exports: each runs without Paretone; its first lines name its requirements."""
