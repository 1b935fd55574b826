"""Which partitions are searched as crowds."""

from cacheproxy.meaning import crowds as module
from cacheproxy.meaning import redisearch_schema
from cacheproxy.meaning.crowds import LASTING, LEAST, SHARE, SLOW, Crowds


def test_only_a_partition_that_was_slow_is_counted_and_a_count_lasts():
    crowds = Crowds()
    crowds.took("fast", SLOW / 2)
    assert not crowds.due("fast", 1000)
    crowds.took("slow", SLOW)
    assert crowds.due("slow", 0)
    assert not crowds.crowd("slow", LEAST)
    crowds.counted("slow", LEAST, 50)
    crowds.took("slow", 10)
    assert not crowds.due("slow", 49 + LASTING)
    assert crowds.crowd("slow", LEAST)
    assert crowds.due("slow", 50 + LASTING)


def test_a_crowd_is_large_and_a_great_part_of_the_index():
    crowds = Crowds()
    crowds.counted("p", LEAST, 0)
    assert not crowds.crowd("p", 0), "how large the index is may not be known yet"
    assert not crowds.crowd("p", LEAST - 1)
    assert crowds.crowd("p", LEAST * SHARE)
    assert not crowds.crowd("p", LEAST * SHARE + 1)
    crowds.counted("p", LEAST - 1, 0)
    assert not crowds.crowd("p", LEAST)
    assert not crowds.crowd("unknown", LEAST)


def test_what_is_remembered_is_bounded(monkeypatch):
    monkeypatch.setattr(module, "MOST", 10)
    crowds = Crowds()
    for number in range(30):
        crowds.took(str(number), 1)
    assert len(crowds) == 10
    assert not crowds.due("19", 0)
    assert crowds.due("20", 0)
    crowds.counted("20", LEAST, 0)
    crowds.took("new", 1)
    assert crowds.crowd("20", LEAST)


def test_in_a_crowd_one_of_the_longest_words_is_wanted_and_all_rank():
    words = ["on", "word7", "and", "so", "words", "more"]
    ranking = "~@w:_on ~@w:_word7 ~@w:_and ~@w:_so ~@w:_words ~@w:_more"
    crowd = redisearch_schema.wording("ab", words, 5, 1.0, crowd=True).query_string()
    assert crowd.endswith(f"(@w:(_word7|_words|_more|_and))=>{{$weight:0;}} {ranking}")
    usual = redisearch_schema.wording("ab", words, 5, 1.0).query_string()
    assert usual.endswith(f"(@w:(_on|_word7|_and|_so|_words|_more))=>{{$weight:0;}} {ranking}")
