"""One frozen record of each thing, and the shapes in which answers show them."""
