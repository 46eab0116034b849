import re
from pathlib import Path

import numpy as np

README = Path(__file__).parents[1] / "README.md"


def test_the_loop_of_the_readme_runs_and_learns_who_answers():
    (block,) = re.findall(r"```python\n(.*?)```", README.read_text(), flags=re.DOTALL)
    names: dict[str, object] = {}
    exec(compile(block, str(README), "exec"), names)
    weights = np.asarray(names["selector"].log_weights)
    assert weights[75:].mean() > weights[:25].mean()


def test_files_the_readme_points_to_exist():
    text = README.read_text()
    targets = [target for target in re.findall(r"\]\(([^)#]+)\)", text) if "://" not in target]
    assert targets
    assert [target for target in targets if not (README.parent / target).exists()] == []
