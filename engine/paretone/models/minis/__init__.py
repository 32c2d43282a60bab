"""Bundled models without an official class."""
