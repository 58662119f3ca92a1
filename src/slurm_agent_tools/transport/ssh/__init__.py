"""A cluster behind a login node, over one SSH connection. Nothing here needs a POSIX system on this side."""
