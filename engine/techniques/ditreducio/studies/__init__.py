"""What studies have DiTReducio do."""
