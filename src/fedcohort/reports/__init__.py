"""WHAT IT LOOKED LIKE: reads results, never computes them."""
