"""Nodes that register at a SuperLink, stay online, and never answer a message.

    python benchmarks/flower/silent_nodes.py ADDRESS COUNT [--seconds SECONDS]

All nodes live in this one process: each has its own key and its own node id and sends heartbeats
through the Fleet API, as a SuperNode does, but never fetches a message. The script prints `ready`
when all of them are online, and ends by itself.
"""

import argparse
import signal
from time import monotonic, sleep
from typing import Self

import httpx
from flwr.common.constant import HEARTBEAT_DEFAULT_INTERVAL
from flwr.proto.fleet_pb2 import (
    ActivateNodeRequest,
    DeactivateNodeRequest,
    RegisterNodeFleetRequest,
    UnregisterNodeFleetRequest,
)
from flwr.proto.heartbeat_pb2 import SendNodeHeartbeatRequest
from flwr.proto.node_pb2 import Node
from flwr.supercore.interceptors.http.runtime_version import RuntimeVersionHttpInterceptor
from flwr.supercore.primitives.asymmetric import generate_key_pairs, public_key_to_bytes
from flwr.supernode.fleet_http_client import FleetHttpClient
from flwr.supernode.node_auth_http_interceptor import NodeAuthHttpInterceptor

PAUSE = 20.0  # seconds between two heartbeats of a node; Flower allows 30
ATTEMPTS = 20  # to register while the SuperLink is busy or away


class SilentNode:
    """A node that is online and never fetches a message."""

    def __init__(self, address: str) -> None:
        private_key, public_key = generate_key_pairs()
        self.public_key = public_key_to_bytes(public_key)
        self.client = FleetHttpClient.from_server_address(
            address,
            True,
            None,
            interceptors=[
                RuntimeVersionHttpInterceptor(component_name="SuperNode"),
                NodeAuthHttpInterceptor(private_key, public_key),
            ],
        )
        self.node = Node()

    def __enter__(self) -> Self:
        self.client.__enter__()
        return self

    def connect(self) -> None:
        """Register and go online; try again while the SuperLink does not answer."""
        for attempt in range(ATTEMPTS):
            try:
                self._connect()
            except httpx.HTTPError:
                if attempt == ATTEMPTS - 1:
                    raise
                sleep(0.5)
            else:
                return

    def _connect(self) -> None:
        self.client.RegisterNode(RegisterNodeFleetRequest(public_key=self.public_key))
        answer = self.client.ActivateNode(
            ActivateNodeRequest(
                public_key=self.public_key, heartbeat_interval=HEARTBEAT_DEFAULT_INTERVAL
            )
        )
        self.node = Node(node_id=answer.node_id)

    def send_heartbeat(self) -> bool:
        """Stay online; return False if the SuperLink does not answer."""
        request = SendNodeHeartbeatRequest(
            node=self.node, heartbeat_interval=HEARTBEAT_DEFAULT_INTERVAL
        )
        try:
            self.client.SendNodeHeartbeat(request)
        except httpx.HTTPError:
            return False
        return True

    def leave(self) -> None:
        """Go offline, if the SuperLink is still there."""
        try:
            self.client.DeactivateNode(DeactivateNodeRequest(node_id=self.node.node_id))
            self.client.UnregisterNode(UnregisterNodeFleetRequest(node_id=self.node.node_id))
        except (httpx.HTTPError, RuntimeError):
            return


def main() -> None:
    """Connect the nodes, keep them online, and end at the time limit or on a signal."""
    parser = argparse.ArgumentParser(description="Connect nodes that never answer.")
    parser.add_argument("address", help="address of the SuperLink, such as 127.0.0.1:8000")
    parser.add_argument("count", type=int, help="number of nodes")
    parser.add_argument("--seconds", type=float, default=600.0, help="how long they stay")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)

    end = monotonic() + options.seconds
    nodes: list[SilentNode] = []
    try:
        for _ in range(options.count):
            node = SilentNode(options.address).__enter__()
            node.connect()
            nodes.append(node)
        print("ready", flush=True)
        stay_online(nodes, end)
    except KeyboardInterrupt:
        pass
    finally:
        # Leaving takes a request for each node. Whoever ends a large crowd ends the SuperLink too.
        if len(nodes) <= 10:
            for node in nodes:
                node.leave()


def stay_online(nodes: list[SilentNode], end: float) -> None:
    """Send the heartbeats of all nodes, evenly spread, until the end."""
    while True:
        for node in nodes:
            if monotonic() >= end:
                return
            node.send_heartbeat()
            sleep(PAUSE / len(nodes))


if __name__ == "__main__":
    main()
