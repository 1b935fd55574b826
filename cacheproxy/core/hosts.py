"""What a host name says about who can reach it. Pure: nothing is looked up."""

import ipaddress


def is_loopback(host: str) -> bool:
    """Whether `host` can only mean this machine."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
