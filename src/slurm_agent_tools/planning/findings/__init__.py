"""What a cluster does badly, from its own accounting: one subject a file, listed and ranked by `ranked`. Pure."""
