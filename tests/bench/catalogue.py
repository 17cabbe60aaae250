"""All rows by name, in the order of the report."""
import rows_bulk
import rows_compile
import rows_decode
import rows_decode_narrow
import rows_encoders
import rows_gguf
import rows_mask
import rows_minilm
import rows_narrow
import rows_small
import rows_translate

ROWS = {**rows_minilm.ROWS, **rows_narrow.ROWS, **rows_bulk.ROWS, **rows_small.ROWS, **rows_decode.ROWS,
        **rows_decode_narrow.ROWS, **rows_gguf.ROWS, **rows_translate.ROWS, **rows_mask.ROWS, **rows_encoders.ROWS,
        **rows_compile.ROWS}
QUICK = {"minilm-128-1t", "minilm-16-1t", "small-d32", "small-d128", "decode-15m-1t", "vaswani-greedy", "compile"}
