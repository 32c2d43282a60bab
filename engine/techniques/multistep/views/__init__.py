"""Views of multistep solvers."""
