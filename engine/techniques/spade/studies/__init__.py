"""What studies find of layers: their importance by words, and what becomes of it."""
