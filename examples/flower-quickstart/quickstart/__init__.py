"""Handwritten digits, divided among clients that fail."""
