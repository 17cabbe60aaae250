# make              builds build/attnc and the runtime's library; B=DIR builds into another folder
# make check        runs every test and ends with the line `N passed, N failed`; GROUPS='A B' runs tests/A and tests/B
# make check-quick  a small part of each test group; make check-long  all that each group can try, for hours
# make mutants      counts the planted faults that the tests find: tests/mutants; SEED=N draws others
# make coverage     lists the lines of compiler/ and runtime/ that no test runs (clang, llvm)
# make deps         installs the packages that the build and the tests need
# make install, make uninstall    see mk/install.mk; the other files of mk/ explain demo, bench, aarch64, emitted-diff,
#                   fuzz-inputs, fuzz-specs, attnc-address, attnc-thread, attnc-memory, language-tables and family-tables
# make dist, make deb, make docs  the archive, the Debian package and the site of the documentation: mk/release.mk
# make clean

CC = clang
HOST_CC = $(CC)
CFLAGS = -std=c11 -D_GNU_SOURCE -O2 -g -Wall -Wextra -Wconversion -Wshadow -Werror
GENERATED_CFLAGS = $(CFLAGS) -Wno-unused-function
# No product is fused with a sum, so that attnc writes the same bits into files whichever compiler built it.
EXACT = -ffp-contract=off
LIBS = -lcjson -lz $(if $(filter yes,$(WITH_ZSTD)),-lzstd) -lm -ldl -lpthread
# yes or no: whether attnc embed reads files of zstd. By default it does where the compiler finds the header of libzstd.
WITH_ZSTD := $(shell $(CC) $(CFLAGS) -include zstd.h -E -x c /dev/null >/dev/null 2>&1 && echo yes || echo no)
B = build

.DELETE_ON_ERROR:
.SECONDARY:

SOURCES = $(filter-out compiler/main.c,$(wildcard compiler/*.c compiler/*/*.c)) $(wildcard runtime/*.c)
EMBEDDED = $(wildcard compiler/model/*.attn compiler/emit/templates/*.tmpl compiler/targets/*.isa compiler/pages/* \
    compiler/engine/attn_tiles.h compiler/project/*.tmpl compiler/package/*/*.tmpl runtime/attn_*.[ch] \
    runtime/tokenizer/*.[ch])
OBJECTS = $(SOURCES:%.c=$(B)/%.o) $(B)/gen/parser.o $(B)/gen/lexer.o $(B)/gen/embedded.o
UNIT_TESTS = $(patsubst tests/unit/%.c,$(B)/unit/%,$(wildcard tests/unit/test_*.c))

NEXT = $(B)/attnc is built. Next: make demo, or $(B)/attnc get FOLDER -o NEW with the folder of a model

all: $(B)/attnc
	$(if $(findstring s,$(firstword -$(MAKEFLAGS))),,@echo "$(NEXT)")

$(B)/attnc: $(B)/compiler/main.o $(B)/libattnc.a
	$(CC) $(CFLAGS) $^ -o $@.new $(LIBS)
	@mv $@.new $@

$(B)/libattnc.a: $(OBJECTS)
	@rm -f $@
	ar rcs $@ $^

$(B)/%.o: %.c $(B)/gen/parser.h
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(EXACT) $(DEFINES) -MMD -MP -c $< -o $@

# The file says what zstd.o is compiled for. It is written where that has changed when the Makefile is read, since a
# target that is always made anew would never be up to date for `make -q`.
ifneq ($(shell cat $(B)/gen/zstd 2>/dev/null),$(WITH_ZSTD))
ifneq ($(MAKECMDGOALS),clean)
$(shell mkdir -p $(B)/gen && echo $(WITH_ZSTD) >$(B)/gen/zstd)
endif
endif

$(B)/compiler/embed/zstd.o: $(B)/gen/zstd
$(B)/compiler/embed/zstd.o: DEFINES = $(if $(filter yes,$(WITH_ZSTD)),-DATTNC_ZSTD)

$(B)/gen/%.o: $(B)/gen/%.c
	$(CC) $(GENERATED_CFLAGS) -Icompiler -Icompiler/syntax -MMD -MP -c $< -o $@

$(B)/gen/parser.c $(B)/gen/parser.h &: compiler/syntax/parser.y
	@mkdir -p $(@D)
	bison -Wall -Werror=conflicts-sr -Werror=conflicts-rr --defines=$(B)/gen/parser.h -o $(B)/gen/parser.c $<

$(B)/gen/lexer.c: compiler/syntax/lexer.l
	@mkdir -p $(@D)
	flex -o $@ $<

$(B)/gen/lexer.o: $(B)/gen/parser.h

$(B)/embed: scripts/embed.c
	@mkdir -p $(@D)
	$(HOST_CC) $(CFLAGS) $< -o $@

$(B)/gen/embedded.c: $(B)/embed $(EMBEDDED)
	@mkdir -p $(@D)
	$(B)/embed $(EMBEDDED) > $@

check: QUICK_OR_LONG =
check-quick: QUICK_OR_LONG = --quick
check-long: QUICK_OR_LONG = --long
check check-quick check-long:
	@$(MAKE) --no-print-directory -j$$(nproc) what-tests-run
	tests/run $(QUICK_OR_LONG) $(GROUPS)

what-tests-run: $(B)/attnc $(B)/language_tables $(B)/family_tables $(UNIT_TESTS)

mutants: $(B)/attnc
	python3 tests/mutants/run.py --all $(if $(SEED),--seed $(SEED))

coverage:
	python3 scripts/coverage.py $(GROUPS)

deps:
	scripts/install_packages.sh test

clean:
	rm -rf $(B)

.PHONY: all check check-quick check-long clean coverage deps mutants what-tests-run

include $(wildcard mk/*.mk)
-include $(shell find $(B) -name '*.d' 2>/dev/null)
