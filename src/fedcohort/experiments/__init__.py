"""THE PAPER: one module per table or figure, each with its settings as data, `run`, and `report`."""
