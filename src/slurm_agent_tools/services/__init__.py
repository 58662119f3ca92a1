"""One use case a file: what a tool does, from the request to the answer."""
