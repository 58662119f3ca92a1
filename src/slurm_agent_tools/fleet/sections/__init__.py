"""One section of get_fleet a module: `section(facts)` makes it. Pure."""
