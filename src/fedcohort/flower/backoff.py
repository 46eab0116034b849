"""Clients whose replies are rejected again and again are not asked for a while."""

from typing import Any

FREE_REJECTIONS = 2  # in a row, without a rest
FIRST_REST = 2  # rounds, after the next rejection; each further one doubles it
LONGEST_REST = 64  # rounds


class BackOff:
    """Remembers who was rejected how often, and who rests until when.

    Two rejections are free. After the third in a row a client rests for 2 rounds, after the fourth
    for 4, and so on, at most for 64. An accepted reply makes all good. Other statuses do not count:
    in training, clients that fail or are lost are honest, and the selector learns of them.
    """

    def __init__(self) -> None:
        self.rejections: dict[str, int] = {}
        self.resting: dict[str, int] = {}  # last round of the rest

    def record(self, client: str, status: str, server_round: int) -> None:
        """Remember the status of a client that was asked in a round."""
        if status == "arrived":
            self.rejections.pop(client, None)
            self.resting.pop(client, None)
        if status != "rejected":
            return
        count = self.rejections.get(client, 0) + 1
        self.rejections[client] = count
        if count > FREE_REJECTIONS:
            doublings = min(count - FREE_REJECTIONS - 1, LONGEST_REST)
            rest = min(FIRST_REST * 2**doublings, LONGEST_REST)
            self.resting[client] = server_round + rest

    def rests(self, client: str, server_round: int) -> bool:
        """Return whether a client is not to be asked in a round."""
        return self.resting.get(client, 0) >= server_round

    def state_dict(self) -> dict[str, Any]:
        """Return all as plain values."""
        return {"rejections": dict(self.rejections), "resting": dict(self.resting)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore all; a checkpoint of an older version holds nothing."""
        self.rejections = {name: int(n) for name, n in state.get("rejections", {}).items()}
        self.resting = {name: int(n) for name, n in state.get("resting", {}).items()}
