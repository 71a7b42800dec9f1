"""The process: settings, the workers of one host or scheduler, and the embedded server."""
