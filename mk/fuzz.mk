# make fuzz-inputs  builds build/fuzz/fuzz_*, which read hostile input (clang, libFuzzer); tests/fuzz/run.py runs them
# make fuzz-specs   builds build/fuzz/specs, which draws specs and compares the C of each with the interpreter: --help

# The fuzzers link every part that reads a file, with tests/fuzz/inputs/arena.c in place of the compiler's arena;
# fuzz_arena alone links the latter.
FUZZ = $(B)/fuzz
FUZZ_CC = clang
FUZZ_SANITIZE = -fsanitize=address,undefined -fno-sanitize-recover=all
FUZZ_CFLAGS = -std=c11 -D_GNU_SOURCE -O1 -g1 -fno-omit-frame-pointer -Wall -Wextra $(FUZZ_SANITIZE)
FUZZ_SOURCES = $(filter-out compiler/support/arena.c compiler/commands/% compiler/main.c, \
        $(wildcard compiler/*.c compiler/*/*.c)) \
    $(wildcard runtime/tokenizer/*.c runtime/*.c) \
    $(filter-out tests/fuzz/inputs/fuzz_%,$(wildcard tests/fuzz/inputs/*.c))
FUZZ_OBJECTS = $(FUZZ_SOURCES:%.c=$(FUZZ)/%.o) $(FUZZ)/gen/parser.o $(FUZZ)/gen/lexer.o $(FUZZ)/gen/embedded.o \
    $(FUZZ)/gen/loaded.o
FUZZ_LOADED = tests/fuzz/inputs/loaded.attn
FUZZERS = $(patsubst tests/fuzz/inputs/%.c,$(FUZZ)/%,$(wildcard tests/fuzz/inputs/fuzz_*.c))

fuzz-inputs: $(FUZZERS)

$(FUZZ)/%.o: %.c $(B)/gen/parser.h
	@mkdir -p $(@D)
	$(FUZZ_CC) $(FUZZ_CFLAGS) -Wconversion -Wshadow -Werror -fsanitize=fuzzer-no-link -MMD -MP -c $< -o $@

$(FUZZ)/gen/%.o: $(B)/gen/%.c $(B)/gen/parser.h
	@mkdir -p $(@D)
	$(FUZZ_CC) $(FUZZ_CFLAGS) -Wno-unused-function -fsanitize=fuzzer-no-link -Icompiler -Icompiler/syntax \
	    -MMD -MP -c $< -o $@

$(FUZZ)/gen/embedded.o: $(FUZZ)/gen/embedded.c
	$(FUZZ_CC) $(FUZZ_CFLAGS) -c $< -o $@

$(FUZZ)/gen/embedded.c: $(B)/embed $(EMBEDDED) $(FUZZ_LOADED)
	@mkdir -p $(@D)
	$(B)/embed $(EMBEDDED) $(FUZZ_LOADED) > $@

$(FUZZ)/gen/loaded.c $(FUZZ)/gen/loaded.h &: $(FUZZ_LOADED) $(B)/attnc
	@mkdir -p $(@D)
	$(B)/attnc compile $(FUZZ_LOADED) -o $(FUZZ)/gen

$(FUZZ)/gen/loaded.o: $(FUZZ)/gen/loaded.c
	$(FUZZ_CC) $(FUZZ_CFLAGS) -Wconversion -Werror -fsanitize=fuzzer-no-link -c $< -o $@

$(FUZZ)/tests/fuzz/inputs/fuzz_loader.o: $(FUZZ)/gen/loaded.h
$(FUZZ)/tests/fuzz/inputs/fuzz_loader.o: FUZZ_CFLAGS += -I$(FUZZ)/gen
$(FUZZ)/fuzz_arena: $(FUZZ)/compiler/support/arena.o

$(FUZZ)/libread.a: $(FUZZ_OBJECTS)
	@rm -f $@
	ar rcs $@ $^

$(FUZZERS): $(FUZZ)/%: $(FUZZ)/tests/fuzz/inputs/%.o $(FUZZ)/libread.a
	$(FUZZ_CC) $(FUZZ_CFLAGS) -fsanitize=fuzzer $(filter-out %.a,$^) $(FUZZ)/libread.a -o $@ -lonig -lutf8proc $(LIBS)

SPECS_OBJECTS = $(patsubst %.c,$(B)/%.o,$(wildcard tests/fuzz/specs/*.c))

fuzz-specs: $(FUZZ)/specs

$(FUZZ)/specs: $(SPECS_OBJECTS) $(B)/libattnc.a
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $^ -o $@ $(LIBS)

.PHONY: fuzz-inputs fuzz-specs
