"""``python -m coterie``: the command line, also from an uninstalled source tree."""

from coterie.cli.main import main

main()
