import os
import pickle

import numpy as np
import pytest

from fedcohort.data.safe_pickle import unpickle


class Malicious:
    def __init__(self, function, *arguments):
        self.call = (function, arguments)

    def __reduce__(self):
        return self.call


@pytest.mark.parametrize(
    ("evil", "named"),
    [
        (lambda path: Malicious(os.system, f"touch {path}"), "system"),
        (lambda path: Malicious(eval, f"open({str(path)!r}, 'w')"), "eval"),
        (lambda path: {b"data": Malicious(open, str(path), "w"), b"labels": []}, "open"),
        (lambda path: Malicious(getattr, "text", "upper"), "getattr"),
        (lambda path: np.array([Malicious(os.system, f"touch {path}")], object), "system"),
    ],
)
def test_a_malicious_pickle_is_refused_before_anything_runs(tmp_path, evil, named):
    data = pickle.dumps(evil(tmp_path / "done"), protocol=2)
    with pytest.raises(
        ValueError, match=rf"batch_1 cannot be read .* asks for \w+\.{named}, .* nothing was run"
    ):
        unpickle(data, "batch_1")
    assert not (tmp_path / "done").exists()
