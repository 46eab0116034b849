"""The page of a run: one file that opens offline, on a screen, a phone or paper."""
