"""A COMPARISON: its config, the trial, the simulation, the summary and the run folder."""
