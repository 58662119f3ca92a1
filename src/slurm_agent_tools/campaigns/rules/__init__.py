"""What follows from what is known of a campaign: one rule a file, asked in order by `next_step`."""
