"""Networks and layers that several models share."""
