"""Shared by tests of the lab in the window."""

from __future__ import annotations
