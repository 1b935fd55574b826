"""HTTP in and out: the proxy listener, the backend connections, the admin listener."""
