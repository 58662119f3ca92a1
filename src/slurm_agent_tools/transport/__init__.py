"""The seam to everything outside the process: commands, files, time; here or over SSH."""
