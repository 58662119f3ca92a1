"""The rules, by what they are about, and what they share; `policy.evaluate` asks them all."""
