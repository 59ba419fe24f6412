"""Hypothesis measures no time: on a busy machine an example may take longer than its usual 200 ms."""

from hypothesis import settings

settings.register_profile("no deadline", deadline=None)
settings.load_profile("no deadline")
