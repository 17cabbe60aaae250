# make            builds build/attnc
# make check      runs every test and ends with the line `N passed, N failed`; GROUPS='A B': those of tests/A and tests/B
# make check-quick  the same without the long ones
# make check-long  the same with all that each group can try, for hours: ATTNC_LONG=1 in its environment
# make coverage   which lines of compiler/ and runtime/ the tests run: scripts/coverage.py (clang, llvm)
# make demo       reads dates, from a fresh clone on: installs and builds what it lacks; demo-similarity ranks sentences
# make bench      times the emitted C beside other programs, which it fetches: tests/bench/README.md; QUICK=1 is short
# make bench-lib SPEC=F  builds what attnc writes of a spec as a shared library that any program can time
# make deps       installs the packages that the build and the tests need
# make aarch64    builds build/aarch64/attnc, on another machine by a cross compiler; qemu-aarch64 runs it
# make fuzz-inputs  builds build/fuzz/fuzz_*, which read hostile input: tests/fuzz/run.py runs them (clang, libFuzzer)
# make fuzz-specs   builds build/fuzz/specs, which draws specs and compares the C of each with the interpreter: see its --help
# make attnc-address, attnc-thread, attnc-memory  builds build/address/attnc and so on, with these sanitizers (clang):
#                 tests/sanitized/run.py runs them
# make language-tables  renews the tables of docs/language.md from compiler/model/settings.def
# make mutants    how many planted wrongs the tests catch, as a table: tests/mutants; SEED=N draws others
# make install    attnc and what goes with it, see packaging/README.md, under DESTDIR and PREFIX (/usr/local),
#                 libraries in its folder LIB (lib); make uninstall, with the same names, takes them away
# make clean

CC = clang
HOST_CC = $(CC)
AARCH64_CC = aarch64-linux-gnu-gcc
CFLAGS = -std=c11 -D_GNU_SOURCE -O2 -g -Wall -Wextra -Wconversion -Wshadow -Werror
GENERATED_CFLAGS = $(CFLAGS) -Wno-unused-function
LIBS = -lcjson -lz -lm -ldl -lpthread
B = build

.DELETE_ON_ERROR:
.SECONDARY:

SOURCES = $(filter-out compiler/main.c compiler/emit/embed.c, $(wildcard compiler/*.c compiler/*/*.c))
EMBEDDED = $(wildcard compiler/emit/templates/*.tmpl compiler/emit/isa/*.isa compiler/pages/*.html runtime/attn_*.h runtime/attn_*.c)
OBJECTS = $(SOURCES:%.c=$(B)/%.o) $(B)/runtime/attn_runtime.o $(B)/runtime/attn_generate.o $(B)/gen/parser.o $(B)/gen/lexer.o $(if $(wildcard compiler/emit/embed.c),$(B)/gen/embedded.o)
UNIT_TESTS = $(patsubst tests/unit/%.c,$(B)/unit/%,$(wildcard tests/unit/test_*.c))

all: $(B)/attnc

$(B)/attnc: $(B)/compiler/main.o $(B)/libattnc.a
	$(CC) $(CFLAGS) $^ -o $@.new $(LIBS)
	@mv $@.new $@

$(B)/libattnc.a: $(OBJECTS)
	@rm -f $@
	ar rcs $@ $^

# What ends in a file has the same bits whoever builds attnc: no product and sum become one.
EXACT = -ffp-contract=off

$(B)/%.o: %.c $(B)/gen/parser.h
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(EXACT) -MMD -MP -c $< -o $@

$(B)/gen/%.o: $(B)/gen/%.c
	$(CC) $(GENERATED_CFLAGS) -Icompiler -Icompiler/syntax -MMD -MP -c $< -o $@

$(B)/gen/parser.c $(B)/gen/parser.h &: compiler/syntax/parser.y
	@mkdir -p $(@D)
	bison -Wall -Werror=conflicts-sr -Werror=conflicts-rr --defines=$(B)/gen/parser.h -o $(B)/gen/parser.c $<

$(B)/gen/lexer.c: compiler/syntax/lexer.l
	@mkdir -p $(@D)
	flex -o $@ $<

$(B)/gen/lexer.o: $(B)/gen/parser.h

$(B)/embed: compiler/emit/embed.c
	@mkdir -p $(@D)
	$(HOST_CC) $(CFLAGS) $< -o $@

$(B)/gen/embedded.c: $(B)/embed $(EMBEDDED)
	@mkdir -p $(@D)
	$(B)/embed $(EMBEDDED) > $@

$(B)/unit/test_runtime: tests/unit/test_runtime.c runtime/attn_runtime.c runtime/attn_runtime.h
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) tests/unit/test_runtime.c runtime/attn_runtime.c -o $@ -lcmocka -lpthread -lm

RUNTIME_WRAPS = posix_memalign free mmap64 munmap open64 close fstat64 read pthread_create pthread_join pthread_mutex_init \
    pthread_mutex_destroy pthread_cond_init pthread_cond_destroy
$(B)/unit/test_runtime_faults: tests/unit/test_runtime_faults.c runtime/attn_runtime.c runtime/attn_runtime.h
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) tests/unit/test_runtime_faults.c runtime/attn_runtime.c -o $@ $(RUNTIME_WRAPS:%=-Wl,--wrap=%) \
	    -lcmocka -lpthread

$(B)/unit/test_generate $(B)/unit/test_generate_beams $(B)/unit/test_generate_streams $(B)/unit/test_generate_sweep \
$(B)/unit/time_generate: $(B)/unit/%: tests/unit/%.c tests/unit/fake_model.c tests/unit/fake_model.h \
    runtime/attn_generate.c runtime/attn_generate.h
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $< tests/unit/fake_model.c runtime/attn_generate.c -o $@ -lcmocka -lpthread -lm

TOKENIZER_SOURCES = $(wildcard examples/common/tokenizer/*.[ch])
$(B)/unit/test_tokenizer: tests/unit/test_tokenizer.c $(TOKENIZER_SOURCES)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(filter %.c,$^) -o $@ -lonig -lcjson -lutf8proc -lcmocka -lpthread -lm

$(B)/unit/%: tests/unit/%.c $(B)/libattnc.a
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -Icompiler -MMD -MP $< $(B)/libattnc.a -o $@ $(LIBS) -lcmocka -lpthread

# Built on its own by a make in B/aarch64; what runs while building is for this machine.
AARCH64_ROOT = $(abspath $(B))/aarch64/root
AARCH64_LIBRARY = $(AARCH64_ROOT)/usr/lib/aarch64-linux-gnu

$(AARCH64_LIBRARY)/libz.so:
	scripts/arm64_library.sh $(AARCH64_ROOT)
	@touch $@

aarch64: $(AARCH64_LIBRARY)/libz.so
	$(MAKE) B=$(B)/aarch64 HOST_CC='$(HOST_CC)' CC='$(AARCH64_CC)' \
	    CFLAGS='$(CFLAGS) -isystem $(AARCH64_ROOT)/usr/include' \
	    LIBS='-L$(AARCH64_LIBRARY) -Wl,-rpath,$(AARCH64_LIBRARY) $(LIBS)' $(B)/aarch64/attnc

# By a make of its own, too. What sanitizers see of a C compiler's output is the same at -O1, sooner.
SANITIZE_address = -fsanitize=address,undefined,float-cast-overflow
SANITIZE_thread = -fsanitize=thread
SANITIZE_memory = -fsanitize=memory
KNOWN_memory = tests/sanitized/known.c
SANITIZED = attnc-address attnc-thread attnc-memory

$(SANITIZED): attnc-%:
	$(MAKE) B=$(B)/$* CC=clang HOST_CC=clang LIBS='$(KNOWN_$*) $(LIBS)' \
	    CFLAGS='$(CFLAGS) -O1 -fno-omit-frame-pointer $(SANITIZE_$*) -fno-sanitize-recover=all' $(B)/$*/attnc

# Everything that reads a file, and tests/fuzz/inputs/arena.c in the place of the compiler's, but for fuzz_arena.
FUZZ = $(B)/fuzz
FUZZ_CC = clang
FUZZ_SANITIZE = -fsanitize=address,undefined -fno-sanitize-recover=all
FUZZ_CFLAGS = -std=c11 -D_GNU_SOURCE -O1 -g -fno-omit-frame-pointer -Wall -Wextra $(FUZZ_SANITIZE)
FUZZ_FOLDERS = support syntax model io import ir passes emit
FUZZ_SOURCES = $(filter-out compiler/support/arena.c compiler/emit/embed.c, \
        $(wildcard $(FUZZ_FOLDERS:%=compiler/%/*.c))) \
    $(wildcard examples/common/tokenizer/*.c runtime/*.c) \
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

# The page as it is where anything is wrong: a half-written one never takes its place.
LANGUAGE_PAGE = docs/language.md
language-tables: $(B)/language_tables
	$(B)/language_tables $(LANGUAGE_PAGE) >$(LANGUAGE_PAGE).part-new || { rm -f $(LANGUAGE_PAGE).part-new; exit 1; }
	@mv $(LANGUAGE_PAGE).part-new $(LANGUAGE_PAGE)

$(B)/language_tables: scripts/language_tables.c compiler/model/settings.def compiler/model/settings.h compiler/attnc.h
	@mkdir -p $(@D)
	$(HOST_CC) $(CFLAGS) $< -o $@

check: $(B)/attnc $(B)/language_tables $(UNIT_TESTS)
	tests/run $(GROUPS)

check-quick: $(B)/attnc $(B)/language_tables $(UNIT_TESTS)
	tests/run --quick $(GROUPS)

check-long: $(B)/attnc $(B)/language_tables $(UNIT_TESTS)
	tests/run --long $(GROUPS)

mutants: $(B)/attnc
	python3 tests/mutants/run.py --all $(if $(SEED),--seed $(SEED))

coverage:
	python3 scripts/coverage.py $(GROUPS)

demo:
	@scripts/demo.sh dates
demo-similarity:
	@scripts/demo.sh similarity
demo-story:
	@MODEL='$(MODEL)' TOKENIZER='$(TOKENIZER)' scripts/demo.sh story

BENCH_CC = clang
bench: $(B)/attnc
	ATTNC=$(abspath $(B)/attnc) LLAMA2C='$(LLAMA2C)' ONNX2C='$(ONNX2C)' BENCH_VENV='$(BENCH_VENV)' \
	    python3 tests/bench/run.py $(if $(QUICK),--quick) $(if $(ONLY),--only $(ONLY)) \
	    $(if $(ROUNDS),--rounds $(ROUNDS)) $(if $(JSON),--json $(JSON))

bench-lib: $(B)/attnc
	@$(if $(SPEC),,echo 'make bench-lib needs SPEC=F' >&2; exit 2)
	ATTNC=$(abspath $(B)/attnc) python3 tests/bench/lib/build.py $(SPEC) --cc $(BENCH_CC) \
	    $(if $(WEIGHTS),--weights $(WEIGHTS)) $(if $(TARGET),--target $(TARGET)) $(if $(UNROLL),--unroll $(UNROLL))

deps:
	scripts/install_packages.sh test

PREFIX = /usr/local
LIB = lib
INSTALLED = $(DESTDIR)$(PREFIX)
VERSION = $(shell sed -n 's/^.define ATTNC_VERSION "\(.*\)"/\1/p' compiler/attnc.h)
FROM_LIB = $(subst $() ,/,$(patsubst %,..,$(subst /, ,$(LIB))))

# For programs of any kind, a shared library too.
RUNTIME_OBJECTS = $(B)/pic/attn_runtime.o $(B)/pic/attn_generate.o
$(B)/pic/%.o: runtime/%.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -fPIC -MMD -MP -c $< -o $@

$(B)/libattn_runtime.a: $(RUNTIME_OBJECTS)
	@rm -f $@
	ar rcs $@ $^

all: $(B)/libattn_runtime.a

# $(call fill,F,TO): packaging/F at TO, with the version, and where it finds PREFIX and LIB from its own place, so that
# the tree may be moved.
fill = sed -e 's|@VERSION@|$(VERSION)|g' -e 's|@LIB@|$(LIB)|g' -e 's|@FROM_LIB@|$(FROM_LIB)|g' 'packaging/$1' \
	    >'$(INSTALLED)/$2' && chmod 644 '$(INSTALLED)/$2'

install: $(B)/attnc $(B)/libattn_runtime.a
	install -d '$(INSTALLED)/bin' '$(INSTALLED)/share/man/man1' '$(INSTALLED)/share/bash-completion/completions' \
	    '$(INSTALLED)/share/attnc/runtime' '$(INSTALLED)/share/attnc/specs' '$(INSTALLED)/share/attnc/editors' \
	    '$(INSTALLED)/share/doc/attnc/docs' '$(INSTALLED)/$(LIB)/pkgconfig' '$(INSTALLED)/$(LIB)/cmake/attnc'
	install $(B)/attnc '$(INSTALLED)/bin/attnc'
	install -m 644 packaging/attnc.bash '$(INSTALLED)/share/bash-completion/completions/attnc'
	install -m 644 packaging/attn.tmLanguage.json '$(INSTALLED)/share/attnc/editors'
	install -m 644 runtime/*.[ch] '$(INSTALLED)/share/attnc/runtime'
	install -m 644 specs/*.attn '$(INSTALLED)/share/attnc/specs'
	install -m 644 README.md LICENSE '$(INSTALLED)/share/doc/attnc'
	install -m 644 docs/*.md '$(INSTALLED)/share/doc/attnc/docs'
	install -m 644 $(B)/libattn_runtime.a '$(INSTALLED)/$(LIB)'
	$(call fill,attnc.1,share/man/man1/attnc.1)
	$(call fill,attnc.pc.in,$(LIB)/pkgconfig/attnc.pc)
	$(call fill,attnc-config.cmake.in,$(LIB)/cmake/attnc/attnc-config.cmake)
	$(call fill,attnc-config-version.cmake.in,$(LIB)/cmake/attnc/attnc-config-version.cmake)

uninstall:
	rm -rf '$(INSTALLED)/share/attnc' '$(INSTALLED)/share/doc/attnc' '$(INSTALLED)/$(LIB)/cmake/attnc'
	rm -f '$(INSTALLED)/bin/attnc' '$(INSTALLED)/share/man/man1/attnc.1' \
	    '$(INSTALLED)/share/bash-completion/completions/attnc' '$(INSTALLED)/$(LIB)/pkgconfig/attnc.pc' \
	    '$(INSTALLED)/$(LIB)/libattn_runtime.a'

clean:
	rm -rf $(B)

.PHONY: all $(SANITIZED) aarch64 bench bench-lib check check-long check-quick coverage demo demo-similarity demo-story deps fuzz-inputs fuzz-specs install language-tables mutants uninstall clean
-include $(shell find $(B) -name '*.d' 2>/dev/null)
