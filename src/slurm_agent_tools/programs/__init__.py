"""What the programs that a job starts do, read and not run: pure."""
