"""Small widgets that several features share."""
