"""Fewer operations for a recorded function, with the same bits.

What `make_fx` records of a small model is mostly bookkeeping: views that change no shape,
transposes of transposes, factors of one, constants and comparisons made several times. On a CPU
each of them takes as long as some arithmetic.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.fx import GraphModule, Node
from torch.utils._pytree import tree_leaves

aten: Any = torch.ops.aten
VIEWS = (aten.view.default, aten._unsafe_view.default, aten.expand.default)
# The same operations, called without the detour that an overload takes.
DIRECT: dict[Any, Any] = {
    aten.add.Tensor: torch.add,
    aten.bmm.default: torch.bmm,
    aten.cat.default: torch.cat,
    aten.clamp_min.default: torch.clamp_min,
    aten.div.Tensor: torch.div,
    aten.gather.default: torch.gather,
    aten.mul.Tensor: torch.mul,
    aten.ne.Scalar: torch.ne,
    aten.neg.default: torch.neg,
    aten.relu.default: torch.relu,
    aten.sum.dim_IntList: torch.sum,
    aten.transpose.int: torch.transpose,
    aten.unsqueeze.default: torch.unsqueeze,
    aten.where.self: torch.where,
}


def simplify(recorded: GraphModule, args: Sequence[Tensor]) -> GraphModule:
    """Return a record that computes the same bits with fewer operations.

    Args:
        recorded: Record of a function of tensors that returns tensors.
        args: Arguments with which to check that it does.

    Returns:
        The shorter record, or the given one if it depends on chance, if an operation changes its
        arguments, or if the shorter one does not give the same.
    """
    if not all(_is_pure(node) for node in recorded.graph.nodes if node.op == "call_function"):
        return recorded
    shorter = GraphModule(recorded, recorded.graph.__deepcopy__({}))
    for node in list(shorter.graph.nodes):
        same = _find_same(node)
        if same is not None:
            node.replace_all_uses_with(same)
    _merge_equal_operations(shorter)
    shorter.graph.eliminate_dead_code()
    _keep_constants(shorter)
    for node in shorter.graph.nodes:
        node.target = DIRECT.get(node.target, node.target)
    shorter.recompile()
    return shorter if _gives_the_same(recorded, shorter, args) else recorded


def _is_pure(node: Node) -> bool:
    """Return whether an operation neither depends on chance nor changes its arguments."""
    target: Any = node.target
    if not isinstance(target, torch._ops.OpOverload):
        return True  # the parts of a result that is a tuple
    is_random = torch.Tag.nondeterministic_seeded in target.tags
    return not is_random and not target._schema.is_mutable


def _find_same(node: Node) -> Node | None:
    """Return the argument of an operation whose result is that argument, or None."""
    first = node.args[0] if node.args else None
    if not isinstance(first, Node):
        return None
    if node.target in VIEWS and _shape(node) == _shape(first):
        return first
    if node.target is aten.transpose.int and first.target is aten.transpose.int:
        is_back = sorted(node.args[1:]) == sorted(first.args[1:])  # type: ignore[type-var]
        return first.args[0] if is_back else None  # type: ignore[return-value]
    if node.target is aten.mul.Scalar and node.args[1] == 1 and _is_only_added(node):
        is_float = node.meta["val"].dtype == first.meta["val"].dtype == torch.float32
        return first if is_float else None
    return None


def _is_only_added(node: Node) -> bool:
    """Return whether only sums use a result: for them its place in memory makes no difference."""
    for user in node.users:
        is_view = user.target in VIEWS
        if user.target is not aten.add.Tensor and not (is_view and _is_only_added(user)):
            return False
    return True


def _shape(node: Node) -> Any:
    value = node.meta.get("val")
    return value.shape if isinstance(value, Tensor) else None


def _merge_equal_operations(recorded: GraphModule) -> None:
    """Compute once what is computed several times from the same arguments."""
    known: dict[str, Node] = {}
    for node in list(recorded.graph.nodes):
        if node.op != "call_function":
            continue
        key = f"{node.target} {node.args} {node.kwargs}"
        if key in known:
            node.replace_all_uses_with(known[key])
        known.setdefault(key, node)


def _keep_constants(recorded: GraphModule) -> None:
    """Make constants once, and not at every replay."""
    for node in list(recorded.graph.nodes):
        if node.target is aten.scalar_tensor.default:
            name = f"constant_{node.name}"
            recorded.register_buffer(name, aten.scalar_tensor.default(*node.args, **node.kwargs))
            with recorded.graph.inserting_before(node):
                node.replace_all_uses_with(recorded.graph.get_attr(name))
            recorded.graph.erase_node(node)


def _gives_the_same(recorded: GraphModule, shorter: GraphModule, args: Sequence[Tensor]) -> bool:
    """Return whether two records give the same bits, in memory of their own."""
    inputs = {arg.untyped_storage().data_ptr() for arg in args}
    results = zip(tree_leaves(recorded(*args)), tree_leaves(shorter(*args)), strict=True)
    for expected, found in results:
        is_own = found.untyped_storage().data_ptr() not in inputs
        if not is_own or found.stride() != expected.stride() or not torch.equal(found, expected):
            return False
    return True
