"""The server over HTTP: who may come in, how much is taken from them, and how it stops."""
