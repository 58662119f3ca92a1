"""Text from outside as data: what may be shown, what is masked, what is logged."""
