"""What callers of every kind share: the tools, their arguments, their answers, their reference pages."""
