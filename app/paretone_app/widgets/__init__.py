"""Small widgets shared by features."""
