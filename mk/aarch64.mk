# make aarch64    builds build/aarch64/attnc on another machine with a cross compiler, AARCH64_CC; qemu-aarch64 runs it
#
# A make of its own builds in B/aarch64, with arm64 libraries that it unpacks there. HOST_CC compiles the tools that run
# during the build.

AARCH64_CC = aarch64-linux-gnu-gcc
AARCH64_ROOT = $(abspath $(B))/aarch64/root
AARCH64_LIBRARY = $(AARCH64_ROOT)/usr/lib/aarch64-linux-gnu

$(AARCH64_LIBRARY)/libzstd.so:
	scripts/arm64_library.sh $(AARCH64_ROOT)
	@touch $@

aarch64: $(AARCH64_LIBRARY)/libzstd.so
	$(MAKE) B=$(B)/aarch64 HOST_CC='$(HOST_CC)' CC='$(AARCH64_CC)' WITH_ZSTD='$(WITH_ZSTD)' \
	    CFLAGS='$(CFLAGS) -isystem $(AARCH64_ROOT)/usr/include' \
	    LIBS='-L$(AARCH64_LIBRARY) -Wl,-rpath,$(AARCH64_LIBRARY) $(LIBS)' $(B)/aarch64/attnc

.PHONY: aarch64
