"""Implementations of `models.engine.Engine`. Each imports its heavy library only when it is built."""
