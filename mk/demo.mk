# make demo             reads dates; works from a fresh clone, since it installs and builds what is missing
# make demo-similarity  ranks sentences by meaning with MiniLM, whose weights it fetches
# make demo-story       continues a text; MODEL=FOLDER and TOKENIZER=FILE name a llama of the user's
# make demo-page        serves pages of the dates and of the story; PORT=N (8000)

demo:
	@scripts/demo.sh dates

demo-similarity:
	@scripts/demo.sh similarity

demo-story:
	@MODEL='$(MODEL)' TOKENIZER='$(TOKENIZER)' scripts/demo.sh story

demo-page:
	@PORT='$(PORT)' scripts/demo.sh page

.PHONY: demo demo-page demo-similarity demo-story
