# make language-tables    renews the tables of docs/language.md from compiler/model/settings.def
#
# The page is replaced only when the whole new page has been written.

LANGUAGE_PAGE = docs/language.md
language-tables: $(B)/language_tables
	$(B)/language_tables $(LANGUAGE_PAGE) >$(LANGUAGE_PAGE).part-new || { rm -f $(LANGUAGE_PAGE).part-new; exit 1; }
	@mv $(LANGUAGE_PAGE).part-new $(LANGUAGE_PAGE)

$(B)/language_tables: scripts/language_tables.c $(wildcard compiler/model/*.def) compiler/model/settings.h \
    compiler/attnc.h
	@mkdir -p $(@D)
	$(HOST_CC) $(CFLAGS) $< -o $@

.PHONY: language-tables
