"""Where a Redis is: what every form means, what is wrong with all others, and that no secret is repeated."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cacheproxy.core.redis_url import Target, Topology, read

SINGLE, SENTINEL, CLUSTER = Topology.SINGLE, Topology.SENTINEL, Topology.CLUSTER

READ = [
    # the URL, the target, the URL as shown
    ("redis://h", Target(SINGLE, (("h", 6379),)), "redis://h:6379/0"),
    ("redis://h/", Target(SINGLE, (("h", 6379),)), "redis://h:6379/0"),
    ("redis://h:7000/15", Target(SINGLE, (("h", 7000),), database=15), "redis://h:7000/15"),
    ("REDIS://Cache.Example:1", Target(SINGLE, (("cache.example", 1),)), "redis://cache.example:1/0"),
    ("redis://my_redis.ns.svc.", Target(SINGLE, (("my_redis.ns.svc.", 6379),)), "redis://my_redis.ns.svc.:6379/0"),
    ("redis://[::1]:65535/0", Target(SINGLE, (("::1", 65535),)), "redis://[::1]:65535/0"),
    ("redis://[FE80:0:0::1]", Target(SINGLE, (("fe80::1", 6379),)), "redis://[fe80::1]:6379/0"),
    ("rediss://:pw@h", Target(SINGLE, (("h", 6379),), password="pw", tls=True), "rediss://:***@h:6379/0"),
    ("redis://u:pw@h", Target(SINGLE, (("h", 6379),), username="u", password="pw"), "redis://u:***@h:6379/0"),
    ("redis://u@h", Target(SINGLE, (("h", 6379),), username="u"), "redis://u@h:6379/0"),
    (
        "redis://us%40er:%40%2F%3F%23%25%2C%3A%c3%a9%20@h",
        Target(SINGLE, (("h", 6379),), username="us@er", password="@/?#%,:é "),
        "redis://us%40er:***@h:6379/0",
    ),
    ("redis://u:a:b@h", Target(SINGLE, (("h", 6379),), username="u", password="a:b"), "redis://u:***@h:6379/0"),
    ("unix:///run/r.sock", Target(SINGLE, (), "/run/r.sock"), "unix:///run/r.sock"),
    ("unix:///run/a@b.sock?db=3", Target(SINGLE, (), "/run/a@b.sock", database=3), "unix:///run/a%40b.sock?db=3"),
    (
        "unix://u:p%40w@/run/my%20r.sock",
        Target(SINGLE, (), "/run/my r.sock", username="u", password="p@w"),
        "unix://u:***@/run/my%20r.sock",
    ),
    (
        "redis+sentinel://a,b:1,[::1]/main",
        Target(SENTINEL, (("a", 26379), ("b", 1), ("::1", 26379)), service="main"),
        "redis+sentinel://a:26379,b:1,[::1]:26379/main/0",
    ),
    (
        "rediss+sentinel://u:pw@a,a,a:26379/my-master_1.x/2",
        Target(SENTINEL, (("a", 26379),), None, "my-master_1.x", 2, "u", "pw", True),
        "rediss+sentinel://u:***@a:26379/my-master_1.x/2",
    ),
    ("redis+cluster://a,b:7", Target(CLUSTER, (("a", 6379), ("b", 7))), "redis+cluster://a:6379,b:7"),
    ("redis+cluster://a/", Target(CLUSTER, (("a", 6379),)), "redis+cluster://a:6379"),
    ("redis+cluster://a/0", Target(CLUSTER, (("a", 6379),)), "redis+cluster://a:6379"),
    (
        "rediss+cluster://:pw@a",
        Target(CLUSTER, (("a", 6379),), password="pw", tls=True),
        "rediss+cluster://:***@a:6379",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("url", "target", "shown"), READ, ids=[row[0] for row in READ])
def test_every_form_is_read(url, target, shown):
    found = read(url)
    assert found == target
    assert (found.shown, repr(found)) == (shown, f"<Target {shown}>")


@pytest.mark.parametrize("url", [row[0] for row in READ if "@" not in row[0]])
def test_what_is_shown_can_be_read_again(url):
    assert read(read(url).shown) == read(url)


WRONG = [
    # the URL, what the error says
    ("", "must begin with one of redis://"),
    ("localhost:6379", "must begin with one of redis://"),
    ("//h", "must begin with"),
    ("http://h", "must begin with"),
    ("redis:/h", "must begin with"),
    ("redis+tls://h", "rediss+cluster://, such as redis://127.0.0.1:6379/0"),
    ("redis://", "lacks a host"),
    ("redis:///0", "lacks a host"),
    ("redis://:6379", "cannot be read"),
    ("redis://a,b", "write redis+sentinel://"),
    ("redis://h h", "no spaces"),
    ("redis://h\n", "no spaces, line ends"),
    ("redis://h\x00", "control characters"),
    ("redis://é", "cannot be read"),
    ("redis://-h", "cannot be read"),
    ("redis://h-", "cannot be read"),
    ("redis://h:", "a port is a number"),
    ("redis://h:x", "a port is a number"),
    ("redis://h:0", "between 1 and 65535"),
    ("redis://h:65536", "between 1 and 65535"),
    ("redis://h:٣", "cannot be read"),
    ("redis://::1", "in brackets"),
    ("redis://[::1", "in brackets"),
    ("redis://[:::1]", "an IPv6 address that cannot be read"),
    ("redis://[1.2.3.4]", "an IPv6 address that cannot be read"),
    ("redis://h/x", "number of a database"),
    ("redis://h/-1", "number of a database"),
    ("redis://h/01", "number of a database"),
    ("redis://h/0/1", "number of a database"),
    ("redis://h?db=1", "the database is written /1"),
    ("redis://h?", "no fields after ?"),
    ("redis://h#", "no part after #"),
    ("redis://h/0#x", "write @ as %40"),
    ("redis://@h", "nothing before the @"),
    ("redis://u:@h", "an empty password"),
    ("redis://:@h", "an empty password"),
    ("redis://u:p@w@h", "an @ or a comma in the user or password"),
    ("redis://u:p,w@h", "an @ or a comma in the user or password"),
    ("redis://u:p/w@h", "an @ after a /"),
    ("redis://u:p?w@h", "write @ as %40, / as %2F, ? as %3F"),
    ("redis://u:p#w@h", "write @ as %40"),
    ("redis://u:p%w@h", "write % as %25"),
    ("redis://u:p%@h", "write % as %25"),
    ("redis://u:%ff@h", "not UTF-8"),
    ("redis://u:%00@h", "no %00"),
    ("unix://run/r.sock", "three slashes"),
    ("unix://", "three slashes"),
    ("unix:///", "three slashes"),
    ("unix:///run/", "three slashes"),
    ("unix:///r.sock?db=x", "nothing after ? but the number"),
    ("unix:///r.sock?", "nothing after ? but the number"),
    ("unix:///r.sock?timeout=1", "nothing after ? but the number"),
    ("unix:///r.sock?db=1&db=2", "nothing after ? but the number"),
    ("redis+sentinel://h", "name the primary"),
    ("redis+sentinel://h/", "name the primary"),
    ("redis+sentinel://h/a b", "no spaces"),
    ("redis+sentinel://h/a%20b", "name the primary"),
    ("redis+sentinel://h/main/x", "number of a database"),
    ("redis+sentinel://h,/main", "lacks a host"),
    ("redis+cluster://h/1", "a cluster has no numbered databases"),
    ("redis+cluster://h,,i", "lacks a host"),
]  # fmt: skip


@pytest.mark.parametrize(("url", "said"), WRONG, ids=[repr(row[0]) for row in WRONG])
def test_everything_else_is_wrong_and_says_what_to_write(url, said):
    assert isinstance(found := read(url), str)
    assert said in found


SECRET = "Zq7Zq7Zq7"


@given(
    st.sampled_from(["redis", "rediss", "unix", "redis+sentinel", "redis+cluster", "http", "x"]),
    st.text("@:/?#%,[]. 0é\n", max_size=6),
    st.text("@:/?#%,[]. 0é\n", max_size=6),
    st.sampled_from(["@h", "h", "/", "", "@h:1/s", "@/a.sock?db=1"]),
)
def test_a_secret_is_never_repeated_whatever_it_stands_in(scheme, before, after, rest):
    """Wherever somebody has put his password: neither the error nor what is shown has it, unless he called it a user,
    a host or a path."""
    for url in f"{scheme}://:{before}{SECRET}{after}{rest}", f"{before}{SECRET}{after}{rest}":
        found = read(url)
        if isinstance(found, str):
            assert SECRET not in found
        elif found.password is not None and SECRET in found.password:
            assert SECRET not in repr(found) + found.shown


@given(st.text(max_size=40))
def test_any_text_is_read_or_wrong(text):
    for url in text, "redis://" + text, "unix://" + text, "redis+sentinel://" + text, "redis+cluster://" + text:
        assert isinstance(read(url), str | Target)


@given(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1))
def test_any_password_can_be_written(password):
    from urllib.parse import quote

    assert read(f"redis://u:{quote(password, safe='')}@h").password == password
