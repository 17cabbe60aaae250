/* python_texts.c: the files of a package that are in Python. */
#include "python.h"

#include <ctype.h>
#include <string.h>

PythonUse python_use(const Package *package) {
    const Program *program = package->c->program;
    const Model *model = package->c->model;
    const Plan *decode = program->entries[ENTRY_DECODE], *forward = program->entries[ENTRY_FORWARD];
    bool pools = false;
    for (int o = 0; o < forward->graph->n_outputs; o++) pools |= forward->graph->outputs[o].role == OUT_pooled;
    PythonUse use = {.states = decode, .tokenizes = package->tokenizer};
    use.writes = decode && model->head.logits && graph_input(decode->graph, IN_tokens);
    use.embeds = package->tokenizer && pools && !forward->seq.exact && python_reads_tokens(model, forward->graph);
    use.hears = reads_sound(model);
    use.transcribes = use.writes && transcribes(model);
    return use;
}

/* A text with the values of its words @LIKE_THIS@, which `words` has in pairs, ended by NULL. */
static const char *filled(const Package *package, const char *name, const char *const *words) {
    const char *at = embedded_text(name);
    if (!at) bug("%s is not in this program", name);
    Text out = text_new(package->arena);
    for (const char *mark; (mark = strchr(at, '@')); ) {
        const char *end = mark + 1;
        while (isupper((unsigned char)*end) || *end == '_') end++;
        const char *const *word = words;
        while (*word && (strlen(*word) != (size_t)(end - mark - 1) || strncmp(*word, mark + 1, strlen(*word)) != 0))
            word += 2;
        const bool known = *end == '@' && *word;
        text_add(&out, at, (size_t)((known ? mark : mark + 1) - at));
        if (known) text_printf(&out, "%s", word[1]);
        at = known ? end + 1 : mark + 1;
    }
    text_printf(&out, "%s", at);
    return out.data;
}

static const char *quoted_or_none(const Package *package, const char *text) {
    return text ? arena_printf(package->arena, "\"%s\"", text) : "None";
}

const char *python_init(const Package *package) {
    const char *name = package->c->model->name;
    const PythonUse use = python_use(package);
    const char *const words[] = {
        "NAME", name,
        "VERSION", ATTNC_VERSION,
        "STATE", use.states ? ", State" : "",
        "STATE_NAME", use.states ? "\"State\", " : "",
        "WEIGHTS", quoted_or_none(package, package->weights ? arena_printf(package->arena, "%s.attnw", name) : NULL),
        "TOKENIZER", quoted_or_none(package, package->tokenizer), NULL};
    return filled(package, "python_init.py.tmpl", words);
}

/* Each line behind `indent`. */
static const char *indented(const Package *package, const char *indent, const char *text) {
    Text out = text_new(package->arena);
    for (const char *end; *text; text = end) {
        end = strchr(text, '\n');
        end = end ? end + 1 : text + strlen(text);
        text_printf(&out, "%s%.*s", indent, (int)(end - text), text);
    }
    return out.data;
}

static const char stub_states[] =
    "    def state(\n"
    "@SOURCE@"
    "    ) -> State:\n"
    "        \"\"\"An empty state@OF_SOURCE@, to which rows are appended.\"\"\"\n";

static const char stub_writes[] =
    "\n    def step(self, states: Sequence[State], tokens: Input) -> Floats:\n"
    "        \"\"\"Appends a token to each of the states; the logits [count, vocab] of the next ones.\"\"\"\n"
    "\n    def generate(\n"
    "        self,\n"
    "        tokens: Input | None = None,\n"
    "        *,\n"
    "        max_new: int@MAX_NEW@,\n"
    "        min_new: int | None = None,\n"
    "        min_length: int | None = None,\n"
    "        sample: bool | None = None,\n"
    "        temperature: float | None = None,\n"
    "        top_k: int | None = None,\n"
    "        top_p: float | None = None,\n"
    "        min_p: float | None = None,\n"
    "        seed: int = 0,\n"
    "        sequence: int = 0,\n"
    "        beams: int | None = None,\n"
    "        length_penalty: float | None = None,\n"
    "        length_form: Literal[\"gnmt\", \"power\"] | None = None,\n"
    "        early_stopping: Literal[\"exact\", \"full\", \"heuristic\", \"never\"] | None = None,\n"
    "        repetition_penalty: float | None = None,\n"
    "        no_repeat_ngram: int | None = None,\n"
    "        suppress: Input | int | None = None,\n"
    "        suppress_first: Input | int | None = None,\n"
    "        bad_words: Iterable[Input] | None = None,\n"
    "        force_first: Input | int | None = None,\n"
    "        force_last: Input | int | None = None,\n"
    "        end: Input | int | None = None,\n"
    "        ignore_end: bool = False,\n"
    "        state: State | None = None,\n"
    "@SOURCE_LINES@"
    "    ) -> Iterator[int]:\n"
    "        \"\"\"The tokens that continue a prompt [n], each when it is chosen, with the one that ends it.\"\"\"\n";

static const char stub_text[] =
    "    def tokenize(self, text: str, *, special: bool = True) -> Ids:\n"
    "        \"\"\"The ids of a text, with the tokens around it if `special`.\"\"\"\n"
    "\n    def tokenize_pair(self, first: str, second: str, /) -> dict[str, Ids]:\n"
    "        \"\"\"The tokens and segments of two texts that are read together.\"\"\"\n"
    "\n    def decode(self, ids: Input, /) -> str:\n"
    "        \"\"\"The text of ids, without special tokens.\"\"\"\n"
    "\n    def stream(self, tokens: Iterable[int] | None = None, /) -> Stream:\n"
    "        \"\"\"The text of ids that come one by one, in parts that no later id changes.\"\"\"\n";

static const char stub_stream[] =
    "\nclass Stream:\n"
    "    def __iter__(self) -> Stream: ...\n"
    "    def __next__(self) -> str: ...\n"
    "    def feed(self, token: int, /) -> str: ...\n"
    "    def finish(self) -> str: ...\n";

static const char stub_embed[] =
    "\n    @overload\n    def embed(\n"
    "        self, texts: str, /, *, prompt: str | None = None, prompt_name: str | None = None\n"
    "    ) -> Floats: ...\n"
    "    @overload\n    def embed(\n"
    "        self, texts: Iterable[str], /, *, prompt: str | None = None, prompt_name: str | None = None\n"
    "    ) -> Floats:\n"
    "        \"\"\"The vectors [count, @WIDTH@] of texts, or [@WIDTH@] of one; long texts are cut.\"\"\"\n"
    "    encode = embed\n";

static const char stub_hears[] =
    "\n    def spectrogram(self, samples: Input, /) -> Floats:\n"
    "        \"\"\"The log-mel spectrogram [bins, frames] of a window of samples of -1 to 1, 16000 a second.\"\"\"\n";

static const char stub_transcribes[] =
    "\n    def transcribe(\n"
    "        self,\n"
    "        samples: Input,\n"
    "        config: dict[str, Any],\n"
    "        *,\n"
    "        language: str | None = None,\n"
    "        task: Literal[\"transcribe\", \"translate\"] | None = None,\n"
    "        times: bool = True,\n"
    "    ) -> list[dict[str, Any]]:\n"
    "        \"\"\"The segments of a sound: begin, end and tokens, and the text with a tokenizer.\n\n"
    "        `config` is the dict of the model's generation_config.json.\n"
    "        \"\"\"\n";

static const char stub_state[] =
    "\nclass State:\n"
    "    @property\n    def rows(self) -> int: ...\n"
    "    def feed(\n"
    "@DECODED@"
    "        outputs: str | Iterable[str] | None = None,\n"
    "    ) -> dict[str, Floats]: ...\n"
    "    def step(self, token: int, /) -> Floats: ...\n"
    "    def copy(self) -> State: ...\n"
    "    def rewind(self, rows: int, /) -> None: ...\n"
    "    def release(self) -> None: ...\n"
    "    def __enter__(self) -> State: ...\n"
    "    def __exit__(self, *what: object) -> None: ...\n";

static int64_t pooled_width(const Package *package) {
    const Graph *g = package->c->module->entries[ENTRY_FORWARD];
    for (int o = 0; o < g->n_outputs; o++)
        if (g->outputs[o].role == OUT_pooled) return g->tensors[g->outputs[o].tensor].dims[1].n;
    return 0;
}

/* Words in a text that is no file. */
static const char *replaced(const Package *package, const char *text, const char *word, const char *by) {
    Text out = text_new(package->arena);
    for (const char *mark; (mark = strstr(text, word)); text = mark + strlen(word))
        text_printf(&out, "%.*s%s", (int)(mark - text), text, by);
    text_printf(&out, "%s", text);
    return out.data;
}

/* What generate takes of a source and of a prefix. */
static const char *source_arguments(const Package *package) {
    const Program *program = package->c->program;
    const char *source = "", *prefix = "";
    if (program->entries[ENTRY_ENCODE])
        source = strstr(python_arguments(package, ENTRY_ENCODE, 0, true), "*,\n") + strlen("*,\n");
    if (graph_input(program->entries[ENTRY_DECODE]->graph, IN_prefix_length))
        prefix = "        prefix_length: int | None = None,\n";
    return arena_printf(package->arena, "%s%s", source, prefix);
}

const char *python_stub(const Package *package) {
    Arena *arena = package->arena;
    const PythonUse use = python_use(package);
    const bool sourced = package->c->program->entries[ENTRY_ENCODE] != NULL;
    Text methods = text_new(arena);
    if (use.states) {
        const char *source = sourced ? python_arguments(package, ENTRY_ENCODE, 0, false) : "        self,\n";
        const char *text = replaced(package, stub_states, "@SOURCE@", source);
        text_printf(&methods, "%s", replaced(package, text, "@OF_SOURCE@", sourced ? " over a source" : ""));
    }
    if (use.writes) {
        const char *bound = generation_bounds(&package->c->model->generation) ? " | None = None" : "";
        const char *text = replaced(package, stub_writes, "@SOURCE_LINES@", source_arguments(package));
        text_printf(&methods, "%s", replaced(package, text, "@MAX_NEW@", bound));
    }
    if (use.tokenizes) text_printf(&methods, "%s", stub_text);
    if (use.embeds) {
        const char *width = arena_printf(arena, "%lld", (long long)pooled_width(package));
        text_printf(&methods, "%s", replaced(package, stub_embed, "@WIDTH@", width));
    }
    if (use.hears) text_printf(&methods, "%s", stub_hears);
    if (use.transcribes) text_printf(&methods, "%s", stub_transcribes);
    if (use.states)
        text_printf(&methods, "%s",
                    replaced(package, stub_state, "@DECODED@", python_arguments(package, ENTRY_DECODE, 1, false)));
    if (use.tokenizes) text_printf(&methods, "%s", stub_stream);
    const char *const words[] = {"NAME", package->c->model->name,
                                 "ARGUMENTS", python_arguments(package, ENTRY_FORWARD, 0, false),
                                 "SHAPES", indented(package, "        ", python_shapes(package)),
                                 "RESULTS", python_result_types(package),
                                 "ITERATOR", use.writes ? "Iterator, " : "",
                                 "LITERAL", use.writes ? "Literal, " : "",
                                 "OVERLOAD", use.embeds ? ", overload" : "",
                                 "METHODS", methods.data ? methods.data : "", NULL};
    return filled(package, "python_init.pyi.tmpl", words);
}

const char *python_setup(const Package *package) {
    const char *const words[] = {"NAME", package->c->model->name,
                                 "LIBRARIES", package->tokenizer ? "[\"onig\", \"cjson\", \"utf8proc\"]" : "[]", NULL};
    return filled(package, "python_setup.py.tmpl", words);
}

/* The name of the distribution, which ends with a letter or a digit. */
static const char *distribution(const Package *package) {
    const char *name = package->c->model->name;
    size_t size = strlen(name);
    while (size > 1 && name[size - 1] == '_') size--;
    return arena_copy(package->arena, name, size);
}

const char *python_project(const Package *package) {
    const char *name = package->c->model->name;
    Text data = text_new(package->arena);
    text_printf(&data, "\"__init__.pyi\", \"py.typed\"");
    if (package->weights) text_printf(&data, ", \"%s.attnw\"", name);
    if (package->tokenizer) text_printf(&data, ", \"%s\"", package->tokenizer);
    const char *const words[] = {"NAME", name, "DISTRIBUTION", distribution(package), "DATA", data.data, NULL};
    return filled(package, "pyproject.toml.tmpl", words);
}
