# make attnc-address, attnc-thread, attnc-memory    builds build/address/attnc and so on with that sanitizer (clang)
#
# tests/sanitized/run.py builds and runs them. Each is built by a make of its own, with the lines alone as debugging
# information and at -O1, for the sanitizers find the same as at -O2 -g, and sooner. SANITIZED_LEVEL=-O0 takes a third of
# the time to build, and its attnc is slower.

SANITIZE_address = -fsanitize=address,undefined,float-cast-overflow
SANITIZE_thread = -fsanitize=thread
SANITIZE_memory = -fsanitize=memory
KNOWN_memory = tests/sanitized/known.c
SANITIZED_LEVEL = -O1
SANITIZED = attnc-address attnc-thread attnc-memory

$(SANITIZED): attnc-%:
	$(MAKE) B=$(B)/$* CC=clang HOST_CC=clang LIBS='$(KNOWN_$*) $(LIBS)' \
	    CFLAGS='$(CFLAGS) $(SANITIZED_LEVEL) -g1 -fno-omit-frame-pointer $(SANITIZE_$*) -fno-sanitize-recover=all' \
	    $(B)/$*/attnc

.PHONY: $(SANITIZED)
