"""Campaigns: many runs of one question, in rounds, to an answer."""
