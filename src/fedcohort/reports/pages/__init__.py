"""What a page shows of each kind of run."""
