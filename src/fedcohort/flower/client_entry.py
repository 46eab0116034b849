"""What the server keeps of one client."""

from dataclasses import dataclass


@dataclass
class Client:
    """One client.

    Attributes:
        name: The name under which the client is known.
        node: The node that the client is on; None while it is away.
        sign_of_life: Time until which the node counts as online; each heartbeat moves it.
        examples: The number of examples that the client last declared.
        lost_at: Node and sign of life when the client was lost; None if it never was.
        is_eligible: Whether the client may be asked at all.
    """

    name: str
    node: int | None = None
    sign_of_life: float = 0.0
    examples: float | None = None
    lost_at: tuple[int, float] | None = None
    is_eligible: bool = True

    @property
    def is_available(self) -> bool:
        """Whether the client is there, may be asked, and has shown life since it was lost."""
        is_alive = self.node is not None and self.lost_at != (self.node, self.sign_of_life)
        return is_alive and self.is_eligible
