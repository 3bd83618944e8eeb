"""`python -m dialbench`."""

from dialbench.cli import main

main()
