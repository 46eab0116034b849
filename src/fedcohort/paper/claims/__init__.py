"""The sentences of the paper that can be tested, and a verdict on each."""
