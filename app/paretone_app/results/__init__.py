"""Results: takes, studies and listening tests, each read once. The rest of the window knows nothing of the files."""
