# make emitted-diff BASE=COMMIT   compares the C of this tree's attnc with the C of that commit's, without comments, and
#                                 where it differs, the bits of the outputs; SPECS='A B' takes specs whose names hold
#                                 these words

emitted-diff: $(B)/attnc
	@$(if $(BASE),,echo 'make emitted-diff needs BASE=COMMIT' >&2; exit 2)
	ATTNC=$(abspath $(B)/attnc) python3 scripts/emitted_diff.py $(BASE) $(SPECS)

.PHONY: emitted-diff
