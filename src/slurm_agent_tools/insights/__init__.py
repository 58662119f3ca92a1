"""What jobs needed, used and waited, and what that says about the next one."""
