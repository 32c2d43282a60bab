"""What was made and measured: takes, studies and listening tests, each read once. Nothing else in the window knows that
these are files."""
