# make install    copies attnc and what belongs to it, listed in packaging/README.md, under DESTDIR and PREFIX, with
#                 libraries in its folder LIB
# make uninstall  with the same variables removes them
#
# WITH_TOKENIZER is yes or no: whether libattn_tokenizer.a is built and installed. By default it is where the compiler
# finds the headers of Oniguruma, cJSON and utf8proc; the tokenizer's sources are installed in any case.

PREFIX = /usr/local
LIB = lib
INSTALLED = $(DESTDIR)$(PREFIX)
VERSION = $(shell sed -n 's/^.define ATTNC_VERSION "\(.*\)"/\1/p' compiler/attnc.h)
FROM_LIB = $(subst $() ,/,$(patsubst %,..,$(subst /, ,$(LIB))))

TOKENIZER_HEADERS = -include oniguruma.h -include cjson/cJSON.h -include utf8proc.h
WITH_TOKENIZER := $(shell $(CC) $(TOKENIZER_HEADERS) -E -x c /dev/null >/dev/null 2>&1 && echo yes || echo no)
LIBRARIES = $(B)/libattn_runtime.a $(if $(filter yes,$(WITH_TOKENIZER)),$(B)/libattn_tokenizer.a)

# Position-independent code, so that a shared library can link it too.
$(B)/pic/%.o: runtime/%.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -fPIC -MMD -MP -c $< -o $@

$(B)/libattn_runtime.a: $(patsubst runtime/%.c,$(B)/pic/%.o,$(wildcard runtime/*.c))
$(B)/libattn_tokenizer.a: $(patsubst runtime/%.c,$(B)/pic/%.o,$(wildcard runtime/tokenizer/*.c))
$(B)/libattn_runtime.a $(B)/libattn_tokenizer.a:
	@rm -f $@
	ar rcs $@ $^

all: $(LIBRARIES)

# $(call fill,F,TO): packaging/F at TO, with the version, and where it finds PREFIX and LIB from its own place, so that
# the tree may be moved.
fill = sed -e 's|@VERSION@|$(VERSION)|g' -e 's|@LIB@|$(LIB)|g' -e 's|@FROM_LIB@|$(FROM_LIB)|g' 'packaging/$1' \
	    >'$(INSTALLED)/$2' && chmod 644 '$(INSTALLED)/$2'

install: $(B)/attnc $(LIBRARIES)
	install -d '$(INSTALLED)/bin' '$(INSTALLED)/share/man/man1' '$(INSTALLED)/share/bash-completion/completions' \
	    '$(INSTALLED)/share/attnc/runtime/tokenizer' '$(INSTALLED)/share/attnc/specs/masks' \
	    '$(INSTALLED)/share/attnc/editors' \
	    '$(INSTALLED)/share/doc/attnc/docs' '$(INSTALLED)/$(LIB)/pkgconfig' '$(INSTALLED)/$(LIB)/cmake/attnc'
	install $(B)/attnc '$(INSTALLED)/bin/attnc'
	install -m 644 packaging/attnc.bash '$(INSTALLED)/share/bash-completion/completions/attnc'
	install -m 644 packaging/attn.tmLanguage.json '$(INSTALLED)/share/attnc/editors'
	install -m 644 runtime/*.[ch] '$(INSTALLED)/share/attnc/runtime'
	install -m 644 runtime/tokenizer/*.[ch] '$(INSTALLED)/share/attnc/runtime/tokenizer'
	install -m 644 specs/*.attn '$(INSTALLED)/share/attnc/specs'
	install -m 644 specs/masks/*.attn '$(INSTALLED)/share/attnc/specs/masks'
	install -m 644 README.md LICENSE '$(INSTALLED)/share/doc/attnc'
	install -m 644 docs/*.md '$(INSTALLED)/share/doc/attnc/docs'
	install -m 644 $(LIBRARIES) '$(INSTALLED)/$(LIB)'
	$(call fill,attnc.1,share/man/man1/attnc.1)
	$(call fill,attnc.pc.in,$(LIB)/pkgconfig/attnc.pc)
	$(if $(filter yes,$(WITH_TOKENIZER)),$(call fill,attnc-tokenizer.pc.in,$(LIB)/pkgconfig/attnc-tokenizer.pc))
	$(call fill,attnc-config.cmake.in,$(LIB)/cmake/attnc/attnc-config.cmake)
	$(call fill,attnc-config-version.cmake.in,$(LIB)/cmake/attnc/attnc-config-version.cmake)

uninstall:
	rm -rf '$(INSTALLED)/share/attnc' '$(INSTALLED)/share/doc/attnc' '$(INSTALLED)/$(LIB)/cmake/attnc'
	rm -f '$(INSTALLED)/bin/attnc' '$(INSTALLED)/share/man/man1/attnc.1' \
	    '$(INSTALLED)/share/bash-completion/completions/attnc' '$(INSTALLED)/$(LIB)/pkgconfig/attnc.pc' \
	    '$(INSTALLED)/$(LIB)/libattn_runtime.a' '$(INSTALLED)/$(LIB)/libattn_tokenizer.a' \
	    '$(INSTALLED)/$(LIB)/pkgconfig/attnc-tokenizer.pc'

.PHONY: install uninstall
