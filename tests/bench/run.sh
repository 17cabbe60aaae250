#!/bin/bash
# Checks of the benchmark itself, without other programs. TAP on stdout. The benchmark is run.py: see README.md.
exec python3 "$(dirname "$0")/selfcheck.py"
