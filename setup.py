"""Finds the packages: dialbench/ as it is, and adapters/ under its import name."""

from setuptools import find_packages, setup

harness = find_packages(include=["dialbench", "dialbench.*"])
systems = find_packages(include=["adapters", "adapters.*"])

setup(packages=[*harness, *("dialbench_" + name for name in systems)])
