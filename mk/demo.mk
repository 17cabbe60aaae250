# make demo             reads dates; works from a fresh clone, since it installs and builds what is missing
# make demo-similarity  ranks sentences by meaning with MiniLM, whose weights it fetches
# make demo-story       continues a text; MODEL=FOLDER and TOKENIZER=FILE name a llama of the user's

demo:
	@scripts/demo.sh dates

demo-similarity:
	@scripts/demo.sh similarity

demo-story:
	@MODEL='$(MODEL)' TOKENIZER='$(TOKENIZER)' scripts/demo.sh story

.PHONY: demo demo-similarity demo-story
