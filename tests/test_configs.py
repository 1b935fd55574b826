"""The example files of configs/: each is what it says, and they fit together."""

import re
import shlex
import socket
import subprocess

import pytest
import yaml
from click.testing import CliRunner

from cacheproxy.cli import cli
from cacheproxy.core.redis_url import read
from cacheproxy.settings import resolve
from cacheproxy.stores.redis_link import Link, LinkTerms
from cacheproxy.stores.redis_survey import remarks
from tests.parts import redis as part
from tests.parts.dockerfile import stages
from tests.redis_fixtures import PASSWORD, USER, login, redis_acl, redis_acl_server, redis_start, users  # noqa: F401
from tests.rig import ROOT

CONFIGS = ROOT / "configs"
COMPOSE = yaml.safe_load((CONFIGS / "compose.yaml").read_text())
PROXIES = [service for name, service in COMPOSE["services"].items() if name.startswith("proxy")]


def directives() -> list[str]:
    """The lines of redis.conf that say something, but who gets in."""
    lines = (CONFIGS / "redis.conf").read_text().splitlines()
    return [line for line in lines if line and not line.startswith(("#", "user "))]


def test_every_file_is_known_here():
    """Whoever adds an example adds how it is checked."""
    names = {path.name for path in CONFIGS.iterdir() if path.is_file()}
    assert names == {"minimal.yaml", "embedded.yaml", "production.yaml", "compose.yaml", "redis.conf"}


# production.yaml


def test_production_shares_one_redis():
    settings = resolve({}, CONFIGS / "production.yaml", {}).settings
    target = read(settings.redis.url.get_secret_value())
    assert (target.username, target.password, target.hosts) == (USER, None, (("redis", 6379),))
    assert settings.redis.password_file == "/run/secrets/redis_password"
    assert (settings.store.data_dir, settings.store.realm) == ("none", "production")
    assert settings.listen.host == "0.0.0.0"


def test_production_says_what_is_off_in_names_that_exist(tmp_path):
    """What is commented out can be taken in."""
    text = (CONFIGS / "production.yaml").read_text()
    taken_in = re.sub(r"^( +)# (\w+: \S+)$", r"\1\2", text, flags=re.MULTILINE)
    redis = yaml.safe_load(taken_in)["redis"]
    assert {"ca_file", "cert_file", "key_file"} <= set(redis)
    (tmp_path / "production.yaml").write_text(taken_in)
    assert resolve({}, tmp_path / "production.yaml", {}).settings.redis.ca_file == "/tls/ca.pem"


def test_check_takes_it():
    done = CliRunner().invoke(cli, ["check", "--config", str(CONFIGS / "production.yaml")])
    assert done.exit_code == 0, done.output


# redis.conf


def test_the_prefix_is_the_users():
    settings = resolve({}, CONFIGS / "production.yaml", {}).settings
    (user,) = (line for line in users() if line.startswith(f"user {USER} "))
    assert {f"~{settings.redis.prefix}:*", f"&{settings.redis.prefix}:*"} <= set(user.split())


def test_the_user_may_nothing_but_what_is_named():
    (user,) = (line.split()[2:] for line in users() if line.startswith(f"user {USER} "))
    assert user[:7] == ["on", f">{PASSWORD}", "resetkeys", "~cacheproxy:*", "resetchannels", "&cacheproxy:*", "-@all"]
    named = user[7:]
    assert len(set(named)) == len(named)
    assert all(re.fullmatch(r"\+[a-z_.]+(\|[a-z]+)?", rule) for rule in named)
    forbidden = (
        "keys",
        "flush",
        "config|set",
        "debug",
        "shutdown",
        "acl",
        "monitor",
        "replicaof",
        "script|f",
        "client|k",
    )
    assert not [rule for rule in named if rule.removeprefix("+").startswith(forbidden)]


@pytest.mark.redis
async def test_a_server_starts_with_it_and_nothing_is_to_be_said_against_it(redis_start):  # noqa: F811
    server = redis_start(acl=users(), config=directives())
    link = Link(read(login(server.url)), LinkTerms(30.0))
    survey = await link.survey()
    assert (survey.maxmemory, survey.eviction, survey.rdb, survey.aof) == (2 * 2**30, "allkeys-lru", False, False)
    assert survey.search is not None
    assert remarks(survey, link.target) == ()
    await link.close()


@pytest.mark.redis
def test_the_user_gets_in_from_another_machine_and_nobody_else_does(redis_start):  # noqa: F811
    server = redis_start(search=False, acl=[line for line in users() if "default" in line], config=directives())
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # sends nothing: which address of ours is no loopback
        except OSError:
            pytest.skip("this machine has no other address than its loopback")
        ours = probe.getsockname()[0]
    with socket.create_connection((ours, server.port), 10) as other:
        other.sendall(b"GET cacheproxy:k\r\n")
        assert other.recv(100).startswith(b"-NOAUTH")


@pytest.mark.redis
def test_a_server_that_cannot_search_starts_without_the_names_of_search(redis_start):  # noqa: F811
    """As its comment says."""
    lines = [" ".join(word for word in line.split() if not word.startswith("+ft.")) for line in users()]
    server = redis_start(search=False, acl=lines)
    assert server.cli("ACL", "DRYRUN", USER, "GET", "cacheproxy:k") == b"OK"
    with pytest.raises(part.place.CannotInstall):
        redis_start(search=False, acl=users())


# compose.yaml


def test_two_proxies_and_one_redis():
    assert set(COMPOSE["services"]) == {"proxy1", "proxy2", "redis"}
    assert COMPOSE["services"]["redis"]["image"] == "redis:8"
    assert all(service["healthcheck"]["test"] for service in COMPOSE["services"].values())


def test_only_the_proxies_ports_are_published():
    assert "ports" not in COMPOSE["services"]["redis"]
    published = [port for proxy in PROXIES for port in proxy["ports"]]
    assert published == ["127.0.0.1:8800:8800", "127.0.0.1:8801:8800"]
    assert COMPOSE["services"]["redis"]["networks"] == ["inside"]
    assert COMPOSE["networks"]["inside"] == {"internal": True}


def test_what_is_mounted_and_built_is_there():
    for service in COMPOSE["services"].values():
        for volume in service["volumes"]:
            source, target, mode = volume.split(":")
            assert (CONFIGS / source).is_file(), source
            assert target.startswith("/etc/")
            assert mode == "ro"
        if "build" in service:
            assert (CONFIGS / service["build"] / "Dockerfile").is_file()


def test_its_flags_exist_and_its_files_are_mounted():
    known = {option for parameter in cli.commands["serve"].params for option in parameter.opts}
    for proxy in PROXIES:
        flags = dict(zip(proxy["command"][::2], proxy["command"][1::2], strict=True))
        assert set(flags) <= known
        assert flags["--config"] in [volume.split(":")[1] for volume in proxy["volumes"]]


def test_secrets_are_files_that_production_reads():
    settings = resolve({}, CONFIGS / "production.yaml", {}).settings
    mounted = {f"/run/secrets/{name}" for name in PROXIES[0]["secrets"]}
    assert mounted == {settings.redis.password_file, settings.store.secret_file}
    assert set(COMPOSE["secrets"]) == set(PROXIES[0]["secrets"])
    assert all(secret["file"].startswith("../secrets/") for secret in COMPOSE["secrets"].values())
    assert "secrets/" in (ROOT / ".gitignore").read_text().splitlines()
    assert not [name for service in COMPOSE["services"].values() for name in service.get("environment", ())]


def test_the_health_of_a_proxy_is_asked_as_the_image_does():
    _, image = stages((ROOT / "Dockerfile").read_text())
    for proxy in PROXIES:
        test = proxy["healthcheck"]["test"]
        assert test[:3] == ["CMD", *image.command("HEALTHCHECK")[:2]]
        assert test[3] == image.command("HEALTHCHECK")[2].replace("/livez", "/readyz")


def test_a_proxy_is_given_the_time_that_it_needs_to_leave():
    drain = resolve({}, CONFIGS / "production.yaml", {}).settings.drain
    for proxy in PROXIES:
        assert int(proxy["stop_grace_period"].removesuffix("s")) > drain.grace + drain.timeout


def test_the_password_is_put_into_the_configuration(tmp_path):
    """The shell command of the Redis service, with its files elsewhere."""
    (script,) = COMPOSE["services"]["redis"]["command"]
    assert COMPOSE["services"]["redis"]["entrypoint"] == ["sh", "-c"]
    (tmp_path / "password").write_text("0123abcd\n")
    script = script.replace("$$", "$").replace("/run/secrets/redis_password", str(tmp_path / "password"))
    script = script.replace("/etc/redis.conf", shlex.quote(str(CONFIGS / "redis.conf")))
    script = script.replace("/tmp/redis.conf", str(tmp_path / "redis.conf"))
    script = script.replace("exec docker-entrypoint.sh redis-server", "exec echo redis-server")
    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["redis-server", str(tmp_path / "redis.conf")]
    original = (CONFIGS / "redis.conf").read_text()
    assert (tmp_path / "redis.conf").read_text() == original.replace(">THE-PASSWORD", ">0123abcd")
    assert original.count(">THE-PASSWORD") == 1
    assert (tmp_path / "redis.conf").stat().st_mode & 0o077 == 0
