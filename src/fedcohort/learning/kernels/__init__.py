"""Kernels of our own for a GPU, in Triton.

The compiled versions of these operations spend most of their time on index arithmetic. Here each
program works on some pixels and on all channels of each, so that it computes offsets once per
pixel.
The operations support batching and differentiation (`vmap`, `grad`), but not the compiler's
tracer of Python code: trace them away first (`compilation.compile_by_shape`).
"""
