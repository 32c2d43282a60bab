"""Networks and layers shared by several models."""
