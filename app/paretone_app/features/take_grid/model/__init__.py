"""Takes in a grid of two dimensions around a reference. Free of Qt and of torch."""
