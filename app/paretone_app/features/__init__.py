"""One folder for each feature of the window: panel, presenter and model."""
