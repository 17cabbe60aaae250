# make attnc-address, attnc-thread, attnc-memory    builds build/address/attnc and so on with that sanitizer (clang)
#
# tests/sanitized/run.py builds and runs them. Each is built by a make of its own, at -O1 with the lines alone as
# debugging information: the sanitizers find the same as at -O2 -g, and sooner.

SANITIZE_address = -fsanitize=address,undefined,float-cast-overflow
SANITIZE_thread = -fsanitize=thread
SANITIZE_memory = -fsanitize=memory
KNOWN_memory = tests/sanitized/known.c
SANITIZED = attnc-address attnc-thread attnc-memory

$(SANITIZED): attnc-%:
	$(MAKE) B=$(B)/$* CC=clang HOST_CC=clang LIBS='$(KNOWN_$*) $(LIBS)' \
	    CFLAGS='$(CFLAGS) -O1 -g1 -fno-omit-frame-pointer $(SANITIZE_$*) -fno-sanitize-recover=all' $(B)/$*/attnc

.PHONY: $(SANITIZED)
