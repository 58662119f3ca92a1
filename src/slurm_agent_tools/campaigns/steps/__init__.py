"""How each step of a campaign is carried out, through its ports."""
