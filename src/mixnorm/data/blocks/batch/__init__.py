"""What batch learners need of a table: its statistics, targets, moments, and columns."""
