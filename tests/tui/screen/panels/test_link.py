from msgspec.structs import replace
from support.top_pictures import inks_of, text_of, view_of
from support.top_scene import frame_at

from kvflow.frames import Traffic
from kvflow.telemetry.model import Gpu, Host, Sample, ServerProcess
from kvflow.tui.screen.ink import Ink, width_of
from kvflow.tui.screen.panels.link import draw


def traffic(h2d, d2h, pending=0, back=0):
    return Traffic(
        h2d_bytes=h2d,
        d2h_bytes=d2h,
        h2d_operations=0,
        d2h_operations=0,
        demand_bytes=0,
        waits=0,
        h2d_pending_bytes=pending,
        d2h_pending_bytes=back,
    )


def seconds_of(*bytes_each_way, **pending):
    """A frame a second, with so many gigabytes moved by then."""
    return [
        frame_at(second, traffic=traffic(int(h2d * 1e9), int(d2h * 1e9), **pending))
        for second, (h2d, d2h) in enumerate(bytes_each_way)
    ]


def test_link_says_the_rate_each_way():
    drawn = text_of(draw(view_of(seconds_of((0, 0), (1.5, 0.25))), 30, 6))
    assert "H2D 1.50 GB/s" in drawn
    assert "D2H 0.25 GB/s" in drawn


def test_link_draws_both_ways_on_one_scale_from_the_middle():
    rows = text_of(draw(view_of(seconds_of((0, 0), (2, 1)), plain=True), 4, 6)).splitlines()
    # One value in the right half of the last cell: 2 of 2 up, 1 of 2 down.
    assert [row[3:4] for row in rows[1:5]] == [":", ":", ":", ""]


def test_link_says_how_much_is_still_to_be_copied_each_way():
    frames = seconds_of((0, 0), (1, 0), pending=3 * 2**20, back=5 * 2**20)
    rows = text_of(draw(view_of(frames), 30, 6)).splitlines()
    assert rows[0].split() == ["H2D", "1.00", "GB/s", "3.0Mi", "to", "go"]
    assert rows[-1].split() == ["D2H", "0.00", "GB/s", "5.0Mi", "to", "go"]


def test_link_has_what_the_driver_counts_beside_what_the_engine_copied():
    gpus = (Gpu(0, "a", pcie_rx_gbps=12.0, pcie_tx_gbps=1.5), Gpu(1, "b", pcie_rx_gbps=3.0))
    view = view_of(seconds_of((0, 0), (1, 0)), sample=Sample(0.0, gpus))
    rows = text_of(draw(view, 40, 6)).splitlines()
    assert rows[0].split()[3:] == ["NVML", "15.0", "all", "GPUs", "0", "to", "1"]
    assert rows[-1].split()[3:] == ["NVML", "1.50", "all", "GPUs"]


def test_link_counts_the_servers_gpus_alone_where_the_driver_tells_which_they_are():
    gpus = (
        Gpu(0, "a", pcie_rx_gbps=12.0, processes=(7, 8)),
        Gpu(1, "b", pcie_rx_gbps=3.0, processes=(9,)),
        Gpu(2, "c", pcie_rx_gbps=1.0),
    )
    host = Host(100, 40, 2, 0.5, (ServerProcess(9, "scheduler", 10, 0.1),))
    view = view_of(seconds_of((0, 0), (1, 0)), sample=Sample(0.0, gpus, host=host))
    rows = text_of(draw(view, 40, 6)).splitlines()
    assert rows[0].split()[3:] == ["NVML", "3.00", "0", "to", "1"]


def test_link_says_for_how_much_of_the_time_copies_went_each_way():
    busy = [replace(traffic(0, 0), h2d_busy_s=s / 4, d2h_busy_s=2.0 * s) for s in range(2)]
    frames = [frame_at(second, traffic=one) for second, one in enumerate(busy)]
    rows = text_of(draw(view_of(frames), 40, 6)).splitlines()
    assert rows[0].split() == ["H2D", "0.00", "GB/s", "busy", "25%"]
    assert rows[-1].split() == ["D2H", "0.00", "GB/s", "busy", "100%"]


def test_link_where_it_is_narrow_drops_the_lighter_note():
    gpus = (Gpu(0, "a", pcie_rx_gbps=12.0),)
    view = view_of(seconds_of((0, 0), (1, 0)), sample=Sample(0.0, gpus))
    assert text_of(draw(view, 28, 6)).splitlines()[0].split()[-2:] == ["NVML", "12.0"]


def test_link_without_a_host_tier_says_so():
    assert text_of(draw(view_of([frame_at(0, traffic=None)]), 30, 6)) == "no host tier"


def test_link_tells_the_ways_apart_by_word_and_ink():
    drawn = draw(view_of(), 30, 6)
    assert inks_of(drawn, "H2D") == {Ink.LOADING}
    assert inks_of(drawn, "D2H") == {Ink.OFFLOADING}


def test_link_lines_are_no_wider_than_the_panel():
    assert all(width_of(line) <= 24 for line in draw(view_of(), 24, 8))
