from hypothesis import settings

settings.register_profile("data", deadline=None, derandomize=True, max_examples=150)
settings.load_profile("data")
