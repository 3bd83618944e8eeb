"""The version of the package, for what it writes; nothing is imported to say it."""

__version__ = "0.1.0"
