from kvflow.policy.share import QUIET_TICKS, UNLIMITED, UntaggedShare


def in_use(floor: int) -> UntaggedShare:
    share = UntaggedShare()
    share.floor = floor
    share.call_arrived()
    return share


def test_share_that_nobody_uses_may_all_go() -> None:
    share = UntaggedShare()
    share.floor = 10
    share.count(1, 5)
    assert share.spare == UNLIMITED


def test_share_in_use_may_go_down_to_its_floor() -> None:
    share = in_use(10)
    share.count(1, 8)
    share.count(2, 7)
    assert share.spare == 5


def test_share_counts_a_node_as_it_is_now() -> None:
    share = in_use(0)
    for tokens in (8, 3, 3, 0, 4):
        share.count(1, tokens)
    assert share.resident == 4


def test_share_falls_out_of_use_when_untagged_calls_stop() -> None:
    share = in_use(10)
    for _ in range(QUIET_TICKS - 1):
        share.tick()
    assert share.spare == -10
    share.tick()
    assert share.spare == UNLIMITED


def test_share_forgets_the_nodes_of_a_tree_that_was_emptied() -> None:
    share = in_use(0)
    share.count(1, 8)
    share.forget_nodes()
    share.count(1, 0)
    assert share.resident == 0
