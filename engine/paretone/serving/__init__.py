"""Speech over HTTP: a server with OpenAI's form of requests, and a client that measures any such server under load.
Neither needs the other: the client measures servers that nobody here wrote."""
