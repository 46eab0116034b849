"""THE PAPER: its setting, its published values, and everything `fedcohort reproduce` computes."""
