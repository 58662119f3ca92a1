"""What starts when, what it will take, and what another order would be worth. Pure: reads records, asks nobody."""
