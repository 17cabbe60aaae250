"""All rows by name, in the order of the report."""
import rows_minilm

ROWS = {**rows_minilm.ROWS}
QUICK = {"minilm-128-1t", "minilm-16-1t", "small-d32", "small-d128", "decode-15m-1t", "vaswani-greedy", "compile"}
