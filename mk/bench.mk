# make bench              times the emitted C beside other programs, which it fetches: tests/bench/README.md
#                         QUICK=1 is short; ONLY=ROWS, ROUNDS=N and JSON=FILE as in that page
# make bench-lib SPEC=F   builds the C of a spec as a shared library that any program can time
#                         WEIGHTS, TARGET and UNROLL as the options of attnc compile

BENCH_CC = clang
bench: $(B)/attnc
	ATTNC=$(abspath $(B)/attnc) LLAMA2C='$(LLAMA2C)' ONNX2C='$(ONNX2C)' BENCH_VENV='$(BENCH_VENV)' \
	    python3 tests/bench/run.py $(if $(QUICK),--quick) $(if $(ONLY),--only $(ONLY)) \
	    $(if $(ROUNDS),--rounds $(ROUNDS)) $(if $(JSON),--json $(JSON))

bench-lib: $(B)/attnc
	@$(if $(SPEC),,echo 'make bench-lib needs SPEC=F' >&2; exit 2)
	ATTNC=$(abspath $(B)/attnc) python3 tests/bench/programs/build.py $(SPEC) --cc $(BENCH_CC) \
	    $(if $(WEIGHTS),--weights $(WEIGHTS)) $(if $(TARGET),--target $(TARGET)) $(if $(UNROLL),--unroll $(UNROLL))

.PHONY: bench bench-lib
