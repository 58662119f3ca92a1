"""What validate_config checks in a configuration: one subject a file."""
