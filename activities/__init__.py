"""What touches the world: running one lease on a host, and talking to the pool."""
