"""What runs: asyncio, but nothing of the outside world. Everything outside comes in through a port."""
