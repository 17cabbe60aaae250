"""What the groups of tests/ share: a reporter of results (tap), attnc as a process (attnc), its targets (targets), the
commits' turns (turns), .npy and .safetensors files (npy, safetensors), and a browser (browser)."""
import sys

sys.dont_write_bytecode = True
