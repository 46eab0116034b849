"""WHO WOULD ANSWER: the failing federation as rows of a table, one row of K answers per round. NumPy only."""
