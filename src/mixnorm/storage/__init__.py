"""Model files: fitted models as plain arrays and JSON, which run no code when they are opened.

Open ``store.py`` first. The room imports no other by name: ``registry.py`` has the list of those
whose classes a file may hold.
"""

from mixnorm.storage.store import load, save

__all__ = ["load", "save"]
