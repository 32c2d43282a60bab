"""What is selected, compared and running; without widgets."""
