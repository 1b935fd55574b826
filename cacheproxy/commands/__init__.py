"""The commands that talk to a running proxy, or look at a log of its traffic. Heavy imports stand inside the command
that needs them; `ALL` is what the command line has of them."""

from cacheproxy.commands.export import export
from cacheproxy.commands.intake import take_in
from cacheproxy.commands.kb import kb
from cacheproxy.commands.purge import purge
from cacheproxy.commands.replay import replay
from cacheproxy.commands.warm import warm

ALL = (kb, purge, warm, replay, export, take_in)
