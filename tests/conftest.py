"""What all tests share: the mark of those that start a Flower federation."""

import pytest

DEPLOYMENT_FOLDERS = ("flower", "chaos")  # their slow tests start a SuperLink and its nodes


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Mark tests with real processes and deadlines: they run alone, one after the other."""
    for item in items:
        is_slow = item.get_closest_marker("slow") is not None
        if is_slow and item.path.parent.name in DEPLOYMENT_FOLDERS:
            item.add_marker(pytest.mark.deployment)
