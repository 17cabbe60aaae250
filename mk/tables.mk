# make language-tables    renews the tables of docs/language.md from compiler/model/: settings.def, definitions.attn
# make family-tables      renews the tables of docs/models.md from compiler/import/ and tests/parity/fixtures/
#
# A page is replaced only when the whole new page has been written.

LANGUAGE_PAGE = docs/language.md
language-tables: $(B)/language_tables
	$(B)/language_tables $(LANGUAGE_PAGE) >$(LANGUAGE_PAGE).part-new || { rm -f $(LANGUAGE_PAGE).part-new; exit 1; }
	@mv $(LANGUAGE_PAGE).part-new $(LANGUAGE_PAGE)

$(B)/language_tables: scripts/language_tables.c $(wildcard compiler/model/*.def) compiler/model/settings.h \
    $(B)/libattnc.a compiler/attnc.h
	$(CC) $(CFLAGS) $< $(B)/libattnc.a $(LIBS) -o $@

MODELS_PAGE = docs/models.md
FIXTURES = tests/parity/fixtures
family-tables: $(B)/family_tables
	$(B)/family_tables $(MODELS_PAGE) $(FIXTURES) >$(MODELS_PAGE).part-new || { rm -f $(MODELS_PAGE).part-new; exit 1; }
	@mv $(MODELS_PAGE).part-new $(MODELS_PAGE)

$(B)/family_tables: scripts/family_tables.c $(B)/libattnc.a compiler/import/import.h compiler/attnc.h
	$(CC) $(CFLAGS) $< $(B)/libattnc.a $(LIBS) -o $@

.PHONY: language-tables family-tables
