import pytest
import torch

from kvflow.engine.cpu.attention import extend_new_rows

pytestmark = pytest.mark.engine


def reference(q, k, v, prefix, window):
    """Softmax attention of one request's new rows, written out; float64, one kv head a head."""
    groups = q.shape[1] // k.shape[1]
    k, v = (x.double().repeat_interleave(groups, 1) for x in (k, v))
    scores = torch.einsum("qhd,khd->hqk", q.double(), k) / q.shape[-1] ** 0.5
    at = torch.arange(prefix, prefix + q.shape[0])[:, None]
    past = torch.arange(k.shape[0])[None]
    seen = (past <= at) & (past >= at - window) if window is not None else past <= at
    scores = scores.masked_fill(~seen, float("-inf"))
    return torch.einsum("hqk,khd->qhd", scores.softmax(-1), v)


class Backend:
    @staticmethod
    def _make_sliding_window_mask(*, q_len, kv_len, sliding_window_size, device, query_offset):
        at = torch.arange(query_offset, query_offset + q_len)[:, None]
        past = torch.arange(kv_len)[None]
        return (past <= at) & (past >= at - sliding_window_size)


@pytest.mark.parametrize("window", [None, 5])
@pytest.mark.parametrize("prefixes", [[0], [7], [0, 7, 31], [12, 0]])
def test_new_rows_attend_to_prefix_and_themselves(prefixes, window):
    generator = torch.Generator().manual_seed(len(prefixes))

    def rand(*shape):
        return torch.randn(*shape, generator=generator)

    new = [5 + 3 * i for i in range(len(prefixes))]
    lengths = [p + n for p, n in zip(prefixes, new, strict=True)]
    k_cache, v_cache = rand(200, 2, 16), rand(200, 2, 16)
    slots = torch.randperm(200, generator=generator)
    req_to_token = torch.zeros(9, 64, dtype=torch.int64)
    rows = torch.tensor([8, 3, 5][: len(prefixes)])
    used = 0
    for row, length in zip(rows, lengths, strict=True):
        req_to_token[row, :length] = slots[used : used + length]
        used += length
    query = rand(sum(new), 8, 16)
    output = torch.full_like(query, float("nan"))
    extend_new_rows(
        Backend(),
        query,
        output,
        k_cache,
        v_cache,
        req_to_token,
        rows,
        torch.tensor(lengths),
        torch.tensor(prefixes),
        torch.tensor(new),
        scaling=None,
        enable_gqa=True,
        sliding_window_size=window,
    )
    start = 0
    for row, prefix, n, length in zip(rows, prefixes, new, lengths, strict=True):
        at = req_to_token[row, :length]
        expected = reference(query[start : start + n], k_cache[at], v_cache[at], prefix, window)
        torch.testing.assert_close(output[start : start + n].double(), expected, atol=1e-5, rtol=0)
        start += n
