"""A mutant: one small bug that is planted on purpose, and the tests that should catch it."""

from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src"


@dataclass(frozen=True)
class Mutant:
    """One planted bug.

    Attributes:
        name: What is wrong, in a few words.
        file: The file in `src/fedcohort`.
        old: Text that occurs exactly once in the file.
        new: Text that takes its place.
        tests: Tests that should fail, as pytest names them.
    """

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]

    def path(self, source: Path = SOURCE) -> Path:
        """Return the file to change under a folder of sources."""
        return source / "fedcohort" / self.file

    def planted(self) -> str:
        """Return the text of the file with the bug in it.

        Raises:
            ValueError: If the old text does not occur exactly once.
        """
        text = self.path().read_text(encoding="utf-8")
        count = text.count(self.old)
        if count != 1:
            raise ValueError(
                f"{self.name}: {self.old!r} must occur once in {self.file}, got {count} times"
            )
        return text.replace(self.old, self.new)
