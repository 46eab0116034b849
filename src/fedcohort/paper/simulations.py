"""The simulations that artefacts need: what is played, and which folder stores it."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from fedcohort.lab import folder as run_folder
from fedcohort.lab.config import SimulationConfig
from fedcohort.lab.simulation import (
    Progress,
    Simulation,
    load_or_simulate,
    load_simulation,
    selector_shapes,
)
from fedcohort.lab.simulation_arrays import Shapes
from fedcohort.lab.simulation_result import SimulationResult
from fedcohort.paper.setting import RUN_CHOICES, Overrides

Schemes = dict[str, SimulationResult]  # by selector, or by case of the regret

# Overrides that apply to simulations; the others are about training.
SIMULATION_FIELDS = ("seeds", "first_seed", "rounds", "sampler")


@dataclass(frozen=True)
class SimulationSpec:
    """A simulation that artefacts need.

    Attributes:
        name: Its name, which is also the name of the folder that stores it.
        config: The paper's config.
        run: Plays a config and tells its second argument how far it is.
        shapes: Returns the rounds and clients of every result of a config.
        fields: Overrides that change the config.
        older_folders: Folders that stored it in earlier versions, one for each artefact.
    """

    name: str
    config: SimulationConfig
    run: Callable[[SimulationConfig, Progress | None], Schemes]
    shapes: Callable[[SimulationConfig], Shapes] = selector_shapes
    fields: tuple[str, ...] = SIMULATION_FIELDS
    older_folders: tuple[str, ...] = ()

    def with_overrides(self, overrides: Overrides) -> "SimulationSpec":
        """Return the simulation with those overrides that apply to it."""
        known = {name: value for name, value in overrides.items() if name in self.fields}
        return replace(self, config=replace(self.config, **known))

    def describe_difference(self, stored: SimulationConfig, overrides: Overrides) -> str:
        """Return what a user asked for that a stored simulation differs in, in words.

        Args:
            stored: The config of the stored simulation.
            overrides: What the user asked for. Reports show all seeds, so those do not count.

        Returns:
            Words such as "rounds 2500, asked 100"; empty if nothing differs.
        """
        asked = self.with_overrides(overrides).config
        words = []
        for name in self.fields:
            is_asked = name in overrides and name not in RUN_CHOICES
            value = getattr(stored, name)
            if is_asked and value != getattr(asked, name):
                words.append(f"{name} {value}, asked {getattr(asked, name)}")
        return "; ".join(words)

    def find(self, home: Path, artefact: str = "") -> Path | None:
        """Return the folder that stores the simulation, or None.

        Args:
            home: Folder of a reproduction, or of exported results.
            artefact: The artefact that asks. Where an earlier version stored the simulation
                once for each artefact, its own copy is found.
        """
        names = [self.name, *self.older_folders]
        if artefact in self.older_folders:
            names.insert(1, artefact)
        for name in names:
            if run_folder.has_simulation(home / name):
                return home / name
        return None

    def load(self, folder: Path) -> Simulation:
        """Return the simulation that a folder stores."""
        return load_simulation(folder, self.shapes)

    def load_or_run(
        self,
        home: Path,
        artefact: str,
        *,
        overwrite: bool = False,
        on_progress: Progress | None = None,
    ) -> Simulation:
        """Return the simulation that a reproduction stores, or play and store it.

        Args:
            home: Folder of the reproduction.
            artefact: The artefact that asks.
            overwrite: Whether to play again and to replace results of other settings.
            on_progress: Is told the scheme, the rounds done and the rounds in all.

        Raises:
            ValueError: If the folder holds something else, before anything is played.
        """
        folder = self.find(home, artefact)
        if folder is None or overwrite:
            folder = home / self.name
        return load_or_simulate(
            folder.name,
            self.config,
            folder,
            run=self.run,
            shapes=self.shapes,
            overwrite=overwrite,
            may_hold_others=True,
            on_progress=on_progress,
        )


def check_simulation_overrides(names: list[str], overrides: Overrides) -> None:
    """Refuse overrides that have no effect, because nothing that is named is trained."""
    for field, value in overrides.items():
        if field not in SIMULATION_FIELDS:
            raise ValueError(
                f"{field} must not be given for {', '.join(names)} alone, which train nothing, "
                f"got {value}"
            )
