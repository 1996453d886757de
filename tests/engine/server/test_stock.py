"""SGLang without the plugin, with radix cache and HiCache, on a machine without a GPU."""

import random

import pytest
from support.real_server import RealServer
from support.server_kinds import POOL

pytestmark = [pytest.mark.engine, pytest.mark.timeout(600)]

PREFIX = 400
KV_BYTES = 6144  # a token, fp32
assert 2 * PREFIX < POOL < 3 * PREFIX


@pytest.fixture
def server(stock_server):
    stock_server.empty()
    return stock_server


def prompt(seed: int, tokens: int = PREFIX) -> list[int]:
    return random.Random(seed).choices(range(256), k=tokens)


def push_out(server: RealServer) -> None:
    """Fill the device pool with others, so that what was there goes to the host."""
    for seed in (900, 901):
        server.generate(prompt(seed), tokens=1)


def test_repeated_prompt_hits_the_device(server):
    first = server.generate(prompt(1))
    again = server.generate(prompt(1))
    assert (first.device, first.host) == (0, 0)
    assert (again.device, again.host) == (PREFIX - 1, 0)


def test_prompt_that_was_pushed_out_hits_the_host(server):
    server.generate(prompt(1))
    push_out(server)
    back = server.generate(prompt(1))
    assert (back.device, back.host) == (0, PREFIX - 1)


def test_output_is_the_same_without_a_hit_from_the_device_and_from_the_host(server):
    for seed in (1, 2, 3):
        miss = server.generate(prompt(seed), tokens=12)
        device = server.generate(prompt(seed), tokens=12)
        push_out(server)
        host = server.generate(prompt(seed), tokens=12)
        assert device.device > 0
        assert host.host > 0
        for hit in (device, host):
            assert hit.ids == miss.ids
            assert hit.logprobs == pytest.approx(miss.logprobs, abs=2e-3)


def test_host_hit_takes_as_long_as_the_link_needs(server):
    nbytes = (PREFIX - 1) * KV_BYTES
    loads = (0.2, 0.8)
    ttfts = []
    for load_s in loads:
        measured = []
        for repeat in range(3):
            seed = int(load_s * 100) + repeat
            server.set_link(None)
            server.generate(prompt(seed), tokens=1)
            push_out(server)
            server.set_link(nbytes / load_s / 1e9)
            hit = server.generate(prompt(seed), tokens=1)
            assert hit.host > 0
            measured.append(hit.ttft_s)
        ttfts.append(min(measured))
    # No faster than the link, and slower by just what the link is slower: base + load time.
    assert all(ttft >= load_s for ttft, load_s in zip(ttfts, loads, strict=True))
    slope = (ttfts[-1] - ttfts[0]) / (loads[-1] - loads[0])
    assert 0.6 < slope < 1.6
