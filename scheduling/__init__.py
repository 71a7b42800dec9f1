"""The rules: what a task, a device and a lease are, and who gets what.

Everything here is pure: no Temporal, no I/O, no clock, no random number. Time and ids come in as arguments.
"""
