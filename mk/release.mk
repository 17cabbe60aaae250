# make dist       writes build/attnc-VERSION.tar.gz of the files of the last commit: the same bytes on every machine
# make deb        writes build/attnc_VERSION_ARCH.deb, which installs below /usr
# make docs       writes the documentation as a site, build/site/html, with mkdocs-material of PyPI; PYTHON names the
#                 Python that has it

PYTHON = python3
DIST = $(B)/attnc-$(VERSION)

# gzip writes neither a name nor a time; git takes the time of the commit for every file.
dist:
	@mkdir -p $(B)
	git archive --format=tar --prefix=attnc-$(VERSION)/ HEAD | gzip -9n >$(DIST).tar.gz.new
	@mv $(DIST).tar.gz.new $(DIST).tar.gz

deb: $(B)/attnc $(LIBRARIES)
	scripts/make_deb.sh $(VERSION) $(B)

docs: $(B)/attnc
	$(PYTHON) scripts/make_site.py $(B)/site

.PHONY: dist deb docs
