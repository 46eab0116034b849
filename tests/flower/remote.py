"""A SuperLink that is reached over the network: announcements, parts of replies, confirmations.

Flower's own functions take replies apart, as its client does before it uploads them.
"""

import threading
from collections import Counter
from types import SimpleNamespace

from fakes import FakeGrid
from flwr.app.message import remove_content_from_message
from flwr.common.serde import message_to_proto
from flwr.proto.message_pb2 import PullObjectResponse
from flwr.proto.node_pb2 import Node
from flwr.proto.runtime_pb2 import PullAppMessagesResponse
from flwr.supercore.inflatable.inflatable_object import get_all_nested_objects, get_object_tree


class RemoteGrid(FakeGrid):
    """A grid that reaches its SuperLink over the network, as that of a deployment does.

    Attributes:
        requests: How often each method was called.
        most_threads: The largest number of threads of ours that were there at a request.
        confirmed: The messages whose receipt was confirmed.
        missing: Node ids whose replies are announced and never uploaded.
        lies: By node id: what the parts of its reply are replaced by, or an error to raise.
    """

    node = Node(node_id=1)
    run = SimpleNamespace(run_id=8)

    def __post_init__(self):
        super().__post_init__()
        self._runtime_client = self
        self.requests = Counter()
        self.most_threads = 0
        self.confirmed = []
        self.missing = set()
        self.lies = {}
        self.objects = {}
        self._lock = threading.RLock()

    def PullMessages(self, request):
        with self._lock:
            self._request("PullMessages")
            response = PullAppMessagesResponse()
            for reply in super().pull_messages(request.message_ids):
                sender = reply.metadata.src_node_id
                answered = reply.metadata.reply_to_message_id
                if "to" in self.lies.get(sender, {}):
                    lie = self.lies[sender]["to"]
                    reply.metadata.__dict__["_reply_to_message_id"] = lie
                reply.metadata.__dict__["_message_id"] = reply.object_id
                is_missing = sender in self.missing
                for object_id, part in get_all_nested_objects(reply).items():
                    content = self.lies.get(sender, {}).get("bytes") or part.deflate()
                    self.objects[object_id] = None if is_missing else content
                announced = message_to_proto(remove_content_from_message(reply))
                announced.metadata.reply_to_message_id = answered
                response.messages_list.append(announced)
                response.message_object_trees.append(get_object_tree(reply))
            return response

    def PullObject(self, request):
        with self._lock:
            self._request("PullObject")
            content = self.objects.get(request.object_id)
            return PullObjectResponse(
                object_found=request.object_id in self.objects,
                object_available=content is not None,
                object_content=content or b"",
            )

    def ConfirmMessageReceived(self, request):
        with self._lock:
            self._request("ConfirmMessageReceived")
            assert (request.run_id, request.node.node_id) == (8, 1)
            self.confirmed.append(request.message_object_id)

    def get_nodes(self):
        with self._lock:
            self._request("GetNodes")
            return super().get_nodes()

    def push_messages(self, messages):
        with self._lock:
            self._request("PushMessages")
            return super().push_messages(messages)

    def pull_messages(self, message_ids):
        raise AssertionError("Flower's own pull waits for each upload in turn")

    def _request(self, name):
        self.requests[name] += 1
        own = [thread for thread in threading.enumerate() if thread.name == "fedcohort-superlink"]
        self.most_threads = max(self.most_threads, len(own))
