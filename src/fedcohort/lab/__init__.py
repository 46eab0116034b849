"""A COMPARISON: its config, the trial, the simulation, the summary, the recorder, the run folder."""
