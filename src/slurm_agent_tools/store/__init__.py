"""What is remembered: submissions, approvals, jobs, tokens, and the log of decisions."""
