# The unit tests in tests/unit: `make check` builds and runs them with all tests, `tests/run unit` runs what is built.
# A test of the compiler links all of it; a test of the runtime links the file that it tests, or has it inside, and no
# more.

$(B)/unit/test_runtime: tests/unit/test_runtime.c runtime/attn_runtime.c runtime/attn_runtime.h
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $< -o $@ -lcmocka -lpthread -lm

RUNTIME_WRAPS = posix_memalign free mmap64 munmap open64 close fstat64 read pthread_create pthread_join \
    pthread_mutex_init pthread_mutex_destroy pthread_cond_init pthread_cond_destroy
$(B)/unit/test_runtime_faults: tests/unit/test_runtime_faults.c runtime/attn_runtime.c runtime/attn_runtime.h
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) tests/unit/test_runtime_faults.c runtime/attn_runtime.c -o $@ $(RUNTIME_WRAPS:%=-Wl,--wrap=%) \
	    -lcmocka -lpthread

GENERATE = runtime/attn_generate.c runtime/attn_rules.c runtime/attn_sample.c
$(B)/unit/test_generate $(B)/unit/test_generate_beams $(B)/unit/test_generate_rules $(B)/unit/test_generate_streams \
$(B)/unit/test_generate_sweep \
$(B)/unit/time_generate: $(B)/unit/%: tests/unit/%.c tests/unit/fake_model.c tests/unit/fake_model.h \
    $(GENERATE) $(GENERATE:.c=.h)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $< tests/unit/fake_model.c $(GENERATE) -o $@ -lcmocka -lpthread -lm

TOKENIZER_SOURCES = $(wildcard runtime/tokenizer/*.[ch])
$(B)/unit/test_tokenizer: tests/unit/test_tokenizer.c $(TOKENIZER_SOURCES)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(filter %.c,$^) -o $@ -lonig -lcjson -lutf8proc -lcmocka -lpthread -lm

$(B)/unit/%: tests/unit/%.c $(B)/libattnc.a
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -Icompiler -MMD -MP $< $(B)/libattnc.a -o $@ $(LIBS) -lcmocka -lpthread
