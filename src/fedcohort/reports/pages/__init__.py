"""What a page shows about each kind of run: loaded results in, `Findings` out."""
