"""From a folder of results, whatever wrote it, to the findings that a page shows."""
