"""The paper: its setting, its published values, and all that `reproduce` computes."""
