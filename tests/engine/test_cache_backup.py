import pytest
from support.prefixes import PREFIX, PROMPT, TAIL, on_host, scheduler
from support.real_cache import nodes, tokens_to
from support.tags import by

pytestmark = pytest.mark.engine


def test_backup_takes_the_fixed_prefix_and_leaves_the_tail():
    mini = scheduler()
    mini.serve(PROMPT, by("a", 30))
    assert on_host(mini.cache) == 30
    [prefix] = [node for node in nodes(mini.cache) if node.backuped]
    assert tokens_to(prefix) == PREFIX


def test_backup_counts_the_tokens_that_it_left_out():
    mini = scheduler()
    mini.serve(PROMPT, by("a", 30), answer=4)
    answered = 3  # the last token of an answer has no KV yet
    assert mini.cache.tree_core.ledger.not_backed_up_tokens == len(TAIL) + answered


def test_backup_saves_what_it_says_it_saves():
    written = {}
    for mode in ("off", "evict"):
        mini = scheduler(mode=mode)
        for number in range(4):
            mini.serve([*PREFIX, number, *TAIL], by("a", 30))
        written[mode] = on_host(mini.cache)
    saved = mini.cache.tree_core.ledger.not_backed_up_tokens
    assert written["off"] - written["evict"] == saved > 0


def test_backup_of_a_tail_follows_when_another_call_finds_it():
    mini = scheduler()
    mini.serve(PROMPT, by("a", 30), answer=1)
    mini.serve([*PROMPT, 8], by("a", 30, run="another"), answer=1)
    assert on_host(mini.cache) == len(PROMPT)


def test_backup_of_a_tail_does_not_follow_when_its_own_call_is_tried_again():
    mini = scheduler()
    req = mini.arrive(PROMPT, by("a", 30))
    mini.prefill()
    mini.retract(req)
    mini.drain()
    assert on_host(mini.cache) == 30


def test_backup_on_the_second_use_counts_each_call_once():
    mini = scheduler(policy="write_through_selective")
    mini.serve(PROMPT, by("a", 30))
    assert on_host(mini.cache) == 0
    mini.serve([*PREFIX, 9], by("a", 30))
    assert on_host(mini.cache) == 30


def test_backup_of_a_call_without_a_known_prefix_is_sglangs():
    mini = scheduler()
    mini.serve(PROMPT, by("a"), answer=1)
    assert on_host(mini.cache) == len(PROMPT)


@pytest.mark.parametrize("policy", ["write_through", "write_through_selective"])
def test_backup_in_mode_off_is_sglangs(policy):
    copies = []
    for core in ("python", "kvflow"):
        mini = scheduler(mode="off", core=core, policy=policy)
        for tail in ([1, 2], [1, 2, 3], [4]):
            mini.serve(PREFIX + tail, by("a", 30))
        copies.append(sorted(tokens_to(node) for node in nodes(mini.cache) if node.backuped))
    assert copies[0] == copies[1] != []
