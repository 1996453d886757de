from kvflow.engine.watch import IDLE_TICKS, MOST_GONE, Watch

ROOT = 0


def begun(*nodes: int) -> Watch:
    watch = Watch()
    watch.begin(dict.fromkeys([ROOT, *nodes]), ROOT)
    return watch


def test_begin_makes_news_of_all_nodes_but_the_root():
    assert begun(1, 2).take(10) == [1, 2]


def test_take_gives_what_waited_longest_and_more_is_left():
    watch = begun(1, 2, 3)
    assert watch.take(2) == [1, 2]
    assert watch.has_news
    watch.changed(1)
    assert watch.take(2) == [3, 1]
    assert not watch.has_news


def test_node_that_changes_again_keeps_its_place():
    watch = begun(1, 2)
    watch.changed(1)
    assert watch.take(1) == [1]


def test_node_that_is_gone_is_no_news_but_gone():
    watch = begun(1, 2)
    watch.removed(1)
    assert watch.take(10) == [2]
    assert watch.take_gone() == (1,)
    assert watch.take_gone() == ()


def test_follows_only_the_last_frame_of_a_watch_that_is_on():
    watch = begun(1)
    watch.seq = watch.number()
    assert watch.follows(watch.seq)
    assert not watch.follows(watch.seq - 1)
    assert not watch.follows(watch.seq + 1)
    watch.end()
    assert not watch.follows(watch.seq)


def test_watch_ends_by_itself_when_nobody_looks():
    watch = begun(1)
    for _ in range(IDLE_TICKS - 1):
        watch.tick()
    assert watch.on
    watch.tick()
    assert not watch.on
    assert not watch._dirty


def test_watch_goes_on_while_somebody_looks():
    watch = begun(1)
    for _ in range(3 * IDLE_TICKS):
        watch.tick()
        watch.take(1)
    assert watch.on


def test_watch_ends_when_too_much_is_gone():
    watch = begun(*range(1, MOST_GONE + 2))
    for node in range(1, MOST_GONE + 2):
        assert watch.on
        watch.removed(node)
    assert not watch.on
    assert not watch._gone


def test_numbers_of_frames_grow_by_one():
    watch = Watch()
    assert [watch.number() for _ in range(3)] == [1, 2, 3]
