"""DiTReducio in studies."""
