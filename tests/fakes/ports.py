"""Ports for servers that tests close and open again."""

import os
import random
import socket

_drawn = random.Random(os.getpid())


def free_port() -> int:
    """A free TCP port of the loopback. Below the ports that the system gives to outgoing connections: a client that
    calls a closed port of those can be given that very port and find itself."""
    while True:
        port = _drawn.randrange(20_000, 32_000)
        with socket.socket() as tried:
            tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                tried.bind(("127.0.0.1", port))
            except OSError:
                continue
        return port
