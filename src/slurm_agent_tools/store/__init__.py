"""What is remembered: submissions, approvals, jobs, and the log of decisions."""
