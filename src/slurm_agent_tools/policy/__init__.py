"""May it: the policy's document, its rules, and the one decision over both. Pure."""
