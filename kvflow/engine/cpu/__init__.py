"""SGLang on a machine without a GPU: the real engine, on a plain CPU.

SGLang 0.5.23 runs there through its own seam for out-of-tree platforms. What is added here:

- `plugin`: the entry points SGLang calls; nothing happens unless KVFLOW_DEVICE=cpu.
- `platform`: tells SGLang that the device is a CPU without kernels of its own.
- `shims`: the few functions HiCache only has for GPUs.
- `attention`: a prefill that computes the new rows only, so that a cache hit saves what it saves
  on a GPU.
- `streams`: streams and events that mean what they mean on a GPU; `link`: copies between host and
  device memory that take the time a link would.
- `demo_model`: a small Llama with random weights, so that nothing has to be downloaded.
"""
