"""Thin Temporal shells round the rules: they carry out what `toolcrib.scheduling` decides."""
