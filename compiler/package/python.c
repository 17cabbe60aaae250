/* python.c: a model as a package for Python, a module of C over the C of the model.
 *
 * The folder NAME of the package has the C, the weights and the tokenizer beside _core.c, which describes the model in
 * tables, and the files attn_py_*.c, which are the same for every model and read them. */
#include "python.h"

#include "../emit/emit.h"

#include <string.h>

enum { MOST_BYTES = 1 << 20 };

/* Words of Python, and the modules of its library, which are found in front of installed packages. */
static const char taken[] =
    "False None True and as async await def del elif except finally from global import in is lambda nonlocal pass "
    "raise with yield numpy setuptools pip wheel "
    "abc aifc antigravity argparse array ast asynchat asyncio asyncore atexit audioop base64 bdb binascii bisect "
    "builtins bz2 cProfile calendar cgi cgitb chunk cmath cmd code codecs codeop collections colorsys compileall "
    "concurrent configparser contextlib contextvars copy copyreg crypt csv ctypes curses dataclasses datetime dbm "
    "decimal difflib dis distutils doctest email encodings ensurepip enum errno faulthandler fcntl filecmp "
    "fileinput fnmatch fractions ftplib functools gc genericpath getopt getpass gettext glob graphlib grp gzip "
    "hashlib heapq hmac html http idlelib imaplib imghdr imp importlib inspect io ipaddress itertools json keyword "
    "lib2to3 linecache locale logging lzma mailbox mailcap marshal math mimetypes mmap modulefinder msilib msvcrt "
    "multiprocessing netrc nis nntplib nt ntpath nturl2path numbers opcode operator optparse os ossaudiodev pathlib "
    "pdb pickle pickletools pipes pkgutil platform plistlib poplib posix posixpath pprint profile pstats pty pwd "
    "py_compile pyclbr pydoc pydoc_data pyexpat queue quopri random re readline reprlib resource rlcompleter runpy "
    "sched secrets select selectors shelve shlex shutil signal site smtpd smtplib sndhdr socket socketserver spwd "
    "sqlite3 sre_compile sre_constants sre_parse ssl stat statistics string stringprep struct subprocess sunau "
    "symtable sys sysconfig syslog tabnanny tarfile telnetlib tempfile termios textwrap this threading time timeit "
    "tkinter token tokenize tomllib trace traceback tracemalloc tty turtle turtledemo types typing unicodedata "
    "unittest urllib uu uuid venv warnings wave weakref webbrowser winreg winsound wsgiref xdrlib xml xmlrpc zipapp "
    "zipfile zipimport zlib zoneinfo";

/* Words of Python, and arguments of the methods, next to which an input of rows or pairs is an argument. */
static const char taken_arguments[] =
    "False None True __debug__ and as assert async await break class continue def del elif else except finally for "
    "from global if import in is lambda nonlocal not or outputs pass raise return self try while with yield";

static bool is_among(const char *words, const char *name) {
    const size_t size = strlen(name);
    for (const char *at = words; (at = strstr(at, name)) != NULL; at += size)
        if ((at == words || at[-1] == ' ') && (at[size] == ' ' || at[size] == '\0')) return true;
    return false;
}

typedef struct Use {
    bool writes; /* generate, and step of states: tokens are all that a row needs, but for numbers that a state keeps */
    bool states;
    bool embeds, tokenizes;
    int64_t width; /* of the vector of a text; 0: there is none */
    bool hears, transcribes; /* reads spectrograms; writes words of them */
} Use;

static Use use_of(const Package *package) {
    const Program *program = package->c->program;
    const Model *model = package->c->model;
    const Plan *decode = program->entries[ENTRY_DECODE], *forward = program->entries[ENTRY_FORWARD];
    const Graph *g = forward->graph;
    Use use = {.states = decode, .tokenizes = package->tokenizer};
    const GraphOutput *pooled = graph_output_of(g, OUT_pooled);
    if (pooled) use.width = g->tensors[pooled->tensor].dims[1].n;
    use.writes = decode && model->head.logits && graph_input(decode->graph, IN_tokens) &&
                 !graph_takes_rows(decode->graph);
    use.embeds = package->tokenizer && use.width && !forward->seq.exact && graph_needs_tokens_alone(g);
    use.hears = reads_sound(model);
    use.transcribes = use.writes && !graph_reads_integers(decode->graph) && transcribes(model);
    return use;
}

/* ---------------------------------------------------------------- the tables of _core.c */

/* `maps`: {name, alike, layers} of each map of attention, where `layers` is {heads, layer}. */
static void set_maps(const Graph *g, TemplateVars *vars) {
    TemplateList *maps = vars_list(vars, "maps");
    for (int o = 0; o < g->n_outputs; o++) {
        if (g->outputs[o].layer < 0 || graph_output_of(g, g->outputs[o].role) != &g->outputs[o]) continue;
        TemplateVars *map = list_record(maps);
        vars_text(map, "name", g->outputs[o].name);
        vars_int(map, "alike", python_maps_alike(g, g->outputs[o].role));
        TemplateList *layers = vars_list(map, "layers");
        for (int k = o; k < g->n_outputs; k++) {
            if (g->outputs[k].role != g->outputs[o].role) continue;
            TemplateVars *layer = list_record(layers);
            vars_int(layer, "heads", g->outputs[k].n_heads);
            vars_int(layer, "layer", g->outputs[k].layer);
        }
    }
}

static void set_entries(const Package *package, TemplateVars *vars) {
    TemplateList *entries = vars_list(vars, "entries");
    for (int e = 0; e < ENTRY_COUNT; e++) {
        const Plan *plan = package->c->program->entries[e];
        if (!plan) continue;
        TemplateVars *entry = list_record(entries);
        set_entry(package->arena, plan, 0, entry);
        set_maps(plan->graph, entry);
        python_set_arguments(package, (EntryKind)e, entry);
        vars_text(entry, "masked", python_masked(package, (EntryKind)e));
    }
}

/* The text as C, in literals that end at the ends of lines or, where lines are long, behind a space. */
static const char *literals(Arena *arena, const char *text) {
    enum { MOST = 100 };
    Text out = text_new(arena);
    while (*text) {
        size_t size = strcspn(text, "\n");
        const bool ends = size <= MOST && text[size] == '\n';
        if (size > MOST)
            for (size = MOST; size > 1 && text[size - 1] != ' ';) size--;
        text_printf(&out, "%s\"%.*s%s\"", out.size ? " " : "", (int)size, text, ends ? "\\n" : "");
        text += size + ends;
    }
    return out.data;
}

typedef struct Method {
    bool wanted;
    const char *name, *function, *flags, *doc;
} Method;

static const char batches[] =
    "A batch has one dimension more, in front, and so have its results; attention_mask, where the model\n"
    "takes it, tells which rows are padding, and rows of results at padding are zero. A list of arrays is a\n"
    "batch of sequences of different lengths, and its results are lists of arrays, but for those that have\n"
    "one row for each sequence. `outputs` names the results that are wanted; the default is all of them.";

static const char generate_doc[] =
    "The tokens that continue a prompt [n], each as soon as it is chosen, with the one that ends the text.\n"
    "\n"
    "tokens: the prompt; default: the token that begins a text, where the model has one. A text, in a package\n"
    "with a tokenizer, is continued by parts of a text. Several prompts give a list of what continues each:\n"
    "lists of tokens, or texts. Their numbers `sequence` count on.\n"
    "max_new, min_new, min_length: the most new tokens, and how many new ones, or tokens of the whole text,\n"
    "come before an end token may.\n"
    "sample, temperature, top_k, top_p, min_p, seed, sequence: sampling; temperature=0 turns it off.\n"
    "beams, length_penalty, length_form, early_stopping: beam search, whose tokens all come at its end;\n"
    "length_form is 'gnmt' or 'power', early_stopping 'exact', 'full', 'heuristic' or 'never'; beams=1 turns\n"
    "it off.\n"
    "repetition_penalty, no_repeat_ngram: divides scores of tokens that the text has; so many tokens in a\n"
    "row are not in a text twice.\n"
    "suppress, suppress_first, bad_words, force_first, force_last: tokens that are never chosen, or not\n"
    "first; a list of lists of tokens that do not follow each other; the only tokens after a text of one\n"
    "token, and the only last ones of max_new.\n"
    "end, ignore_end: the tokens that end a text; whether they do not.\n"
    "stop: a text or several, with the first of which the text ends; parts of the text do not have it.\n"
    "state: a state that the text continues and that receives its rows; the rules know its tokens.\n"
    "Inputs that are numbers of the sequence are needed where the text begins.\n"
    "\n"
    "The spec states what is not given.";

static const char transcribe_doc[] =
    "transcribe(samples, config, *, language=None, task=None, times=True, fallback=False, temperature=None, "
    "logprob_threshold=None, compression_threshold=None, no_speech_threshold=None, seed=0)\n--\n\n"
    "The words of a sound of any length: a list of dicts with `begin` and `end` in seconds and the `tokens`\n"
    "between them, and with their `text` where the package has a tokenizer.\n"
    "\n"
    "samples: float32 [n] of -1 to 1, 16000 a second.\n"
    "config: the dict of the model's generation_config.json, which names its languages, tasks and times.\n"
    "language: a code such as 'en'; default: the most probable one of the first window.\n"
    "task: 'transcribe' or 'translate', into English; default: 'transcribe', where the config has tasks.\n"
    "times: whether a sound of one window is divided, too; a longer one always is.\n"
    "fallback: whether missing ones of the next arguments have the values of openai's code.\n"
    "temperature: a number, or several that are tried in turn until a text is accepted; 0 is greedy search.\n"
    "logprob_threshold, compression_threshold: a text is not accepted if the mean of the logarithms of its\n"
    "tokens' probabilities is less, or if it is more than so many times as long as zlib makes it.\n"
    "no_speech_threshold: a window has no text if the token of silence is more probable than that, and the\n"
    "text below logprob_threshold.\n"
    "seed: of the samples.";

static void set_methods(const Package *package, const Use *use, TemplateVars *vars) {
    Arena *arena = package->arena;
    const bool sourced = package->c->program->entries[ENTRY_ENCODE] != NULL;
    const char *fast = "METH_FASTCALL | METH_KEYWORDS";
    const char *source = sourced ? python_signature(package, ENTRY_ENCODE) : "";
    const char *forward = arena_printf(
        arena, "forward(*, %s, outputs=None)\n--\n\n"
               "Runs the model on whole sequences; returns a dict of float32 arrays.\n\n%s\n%s",
        python_signature(package, ENTRY_FORWARD), python_shapes(package), batches);
    const char *state = arena_printf(arena, "state(%s%s)\n--\n\nAn empty state%s, to which rows are appended.",
                                     sourced ? "*, " : "", source, sourced ? " over one source" : "");
    const Graph *written = package->c->module->entries[use->writes ? ENTRY_DECODE : ENTRY_FORWARD];
    const char *numbers = python_numbers(package, use->writes ? ENTRY_DECODE : ENTRY_COUNT);
    const char *generate = arena_printf(
        arena, "generate(tokens=None, *, max_new%s, min_new=None, min_length=None, sample=None, temperature=None, "
               "top_k=None, top_p=None, min_p=None, seed=0, sequence=0, beams=None, length_penalty=None, "
               "length_form=None, early_stopping=None, repetition_penalty=None, no_repeat_ngram=None, suppress=None, "
               "suppress_first=None, bad_words=None, force_first=None, force_last=None, end=None, ignore_end=False, "
               "stop=None, state=None%s%s%s%s)\n--\n\n%s",
        generation_bounds(&package->c->model->generation) ? "=None" : "", sourced ? ", " : "", source,
        graph_input(written, IN_prefix_length) ? ", prefix_length=None" : "", numbers, generate_doc);
    const char *step = arena_printf(
        arena, "step(states, tokens, /%s%s)\n--\n\nAppends a token to each of the states in one pass over the weights; "
               "returns the logits\n[count, vocab] of the next ones.", *numbers ? ", *" : "", numbers);
    const char *embed = "embed(texts, /, *, prompt=None, prompt_name=None, batch_size=64, show_progress_bar=None, "
                        "normalize_embeddings=False, convert_to_numpy=True)\n--\n\n"
                        "The vectors [count, d] of texts, or [d] of one, as float32. Before each text stands the text "
                        "`prompt`,\nor the model's prompt of that name, or else its default prompt, if it has one. A "
                        "text with more tokens\nthan the model reads is cut. batch_size: the texts of one call of the "
                        "model, 1 to 4096.\nnormalize_embeddings: whether each vector is divided by its length. "
                        "show_progress_bar: whether\nstderr tells how many texts are done.";
    const Method methods[] = {
        {true, "forward", "forward_method", fast, forward},
        {true, "close", "close_method", "METH_NOARGS",
         "close()\n--\n\nFrees the weights, the threads and the memory of calls, once those that run have ended. "
         "Later\ncalls are an Error."},
        {true, "__enter__", "open_method", "METH_NOARGS", "__enter__()\n--\n\nThe model, which the end closes."},
        {true, "__exit__", "end_method", "METH_FASTCALL", "__exit__(*what)\n--\n\nCloses the model."},
        {true, "__reduce__", "reduce_method", "METH_NOARGS",
         "__reduce__()\n--\n\nHow a pickle loads the model again: by the path of the weights, threads and target."},
        {true, "target", "target_method", "METH_NOARGS", "target()\n--\n\nThe set of instructions that runs."},
        {use->states, "state", "state_method", fast, state},
        {use->writes, "step", "step_method", fast, step},
        {use->writes, "generate", "generate_method", fast, generate},
        {use->tokenizes, "tokenize", "tokenize_method", fast,
         "tokenize(text, *, special=True)\n--\n\n"
         "The ids of a text as int32 [n], with the tokens around it if special."},
        {use->tokenizes, "tokenize_pair", "tokenize_pair_method", "METH_FASTCALL",
         "tokenize_pair(first, second, /)\n--\n\nThe tokens and segments of two texts that are read together, as a "
         "dict."},
        {use->tokenizes, "decode", "decode_method", "METH_O",
         "decode(ids, /)\n--\n\nThe text of ids [n], without special tokens."},
        {use->tokenizes, "stream", "stream_method", "METH_FASTCALL",
         "stream(tokens=None, /)\n--\n\nAn iterator over the text of ids that come one by one, in parts that no later "
         "id changes;\nwithout ids, its feed(token) and finish() give the parts."},
        {use->hears, "spectrogram", "spectrogram_method", "METH_O",
         "spectrogram(samples, /)\n--\n\nThe log-mel spectrogram of one window, float32 [bins, frames], of float32 "
         "samples [n] of -1 to 1,\n16000 a second; silence stands in place of missing ones."},
        {use->transcribes, "transcribe", "transcribe_method", fast, transcribe_doc},
        {use->embeds, "embed", "embed_method", fast, embed},
        {use->embeds, "encode", "embed_method", fast, embed}};
    TemplateList *list = vars_list(vars, "methods");
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
        if (!methods[i].wanted) continue;
        TemplateVars *record = list_record(list);
        vars_text(record, "name", methods[i].name);
        vars_text(record, "function", methods[i].function);
        vars_text(record, "flags", methods[i].flags);
        vars_text(record, "doc", literals(arena, methods[i].doc));
    }
}

static void set_prompts(Arena *arena, const TextRules *text, TemplateVars *vars) {
    TemplateList *prompts = vars_list(vars, "prompts");
    for (int64_t i = 0; i < text->n_prompts; i++) {
        TemplateVars *record = list_record(prompts);
        vars_text(record, "name", project_spelled(arena, text->prompts[i].name));
        vars_text(record, "text", project_spelled(arena, text->prompts[i].text));
    }
    vars_int(vars, "chosen", text->chosen);
    vars_text(vars, "rules", arena_printf(arena, "%d", text_rules_number(text)));
}

static const char *quoted_or_none(const Package *package, const char *text) {
    return text ? arena_printf(package->arena, "\"%s\"", text) : "None";
}

/* An embedded file of Python with the values of its words, such as @NAME@. */
static const char *filled(const Package *package, const Use *use, const char *name) {
    const char *model = package->c->model->name;
    const char *const words[] = {
        "@NAME@", model,
        "@VERSION@", ATTNC_VERSION,
        "@STATE@", use->states ? ", State" : "",
        "@STATE_NAME@", use->states ? "\"State\", " : "",
        "@WEIGHTS@", quoted_or_none(package, package->weights ? arena_printf(package->arena, "%s.attnw", model) : NULL),
        "@TOKENIZER@", quoted_or_none(package, package->tokenizer),
        "@LIBRARIES@", package->tokenizer ? "[\"onig\", \"cjson\", \"utf8proc\"]" : "[]", NULL};
    return text_filled(package->arena, embedded_file(name), words);
}

/* Puts `indent` before each line, and drops the end of the last line. */
static const char *indented(const Package *package, const char *indent, const char *text) {
    Text out = text_new(package->arena);
    for (size_t size; *text; text += size + (text[size] == '\n')) {
        size = strcspn(text, "\n");
        text_printf(&out, "%s%s%.*s", out.size ? "\n" : "", indent, (int)size, text);
    }
    return out.data;
}

/* The name of the distribution, which ends with a letter or a digit. */
static const char *distribution(const Package *package) {
    const char *name = package->c->model->name;
    size_t size = strlen(name);
    while (size > 1 && name[size - 1] == '_') size--;
    return arena_copy(package->arena, name, size);
}

static const char *kind_of(const Compilation *c) {
    if (c->model->alone) return "attention";
    if (c->model->encoder && c->model->decoder) return "encoder and decoder";
    return c->model->decoder ? "decoder" : "encoder";
}

/* How many tokens there are, of the decoder where there is one; 0 for a model without tokens. */
static int64_t words_known(const Model *model) {
    const Stack *stack = model->decoder ? model->decoder : model->encoder;
    return stack ? stack->vocab : 0;
}

static TemplateVars *variables(const Package *package, const Use *use) {
    Arena *arena = package->arena;
    const Compilation *c = package->c;
    TemplateVars *vars = vars_new(arena, NULL);
    int64_t state_bytes, source_bytes;
    set_states(arena, c->program, vars, &state_bytes, &source_bytes);
    set_entries(package, vars);
    set_methods(package, use, vars);
    set_prompts(arena, &c->model->text, vars);
    python_set_results(package, vars);
    vars_text(vars, "p", c->model->name);
    vars_text(vars, "P", upper_case(arena, c->model->name));
    vars_text(vars, "version", ATTNC_VERSION);
    vars_text(vars, "distribution", distribution(package));
    vars_text(vars, "shapes", indented(package, "        ", python_shapes(package)));
    vars_text(vars, "tokenizer", package->tokenizer ? package->tokenizer : "");
    vars_int(vars, "weights", package->weights);
    vars_text(vars, "kind", kind_of(c));
    vars_int(vars, "row_width", use->width ? use->width : c->model->d_model);
    vars_int(vars, "words_known", words_known(c->model));
    vars_int(vars, "writes", use->writes);
    vars_int(vars, "numbered", *python_numbers(package, use->writes ? ENTRY_DECODE : ENTRY_COUNT) != '\0');
    vars_int(vars, "embeds", use->embeds);
    vars_int(vars, "hears", use->hears);
    vars_int(vars, "transcribes", use->transcribes);
    vars_int(vars, "width", use->width);
    vars_int(vars, "text_vocab", package->tokenizer ? project_text_stack(c->model)->vocab : 0);
    vars_int(vars, "prefixed", use->writes && graph_input(c->program->entries[ENTRY_DECODE]->graph, IN_prefix_length));
    return vars;
}

/* ---------------------------------------------------------------- the files */

/* The path of a file in the folder of the module. */
static const char *inner(const Package *package, const char *name) {
    return arena_printf(package->arena, "%s/%s", package->c->model->name, name);
}

static const char *expanded(const Package *package, const char *template, TemplateVars *vars) {
    return template_expanded(package->arena, template, MOST_BYTES, template, vars);
}

static void check_arguments(const Model *model) {
    for (int i = 0; i < model->n_row_inputs; i++)
        if (is_among(taken_arguments, model->row_inputs[i].kind.name))
            fail_status(EXIT_CANNOT, "the input `%s` has the name of a word of Python or of another argument; give the "
                                     "input another name", model->row_inputs[i].kind.name);
}

static const PackageFile *files(const Package *package) {
    const char *name = package->c->model->name;
    if (is_among(taken, name))
        fail_status(EXIT_CANNOT, "`%s` is a word or a module of Python and cannot name a package; give the model "
                                 "another name", name);
    if (strncmp(name, "attn_", 5) == 0)
        fail_status(EXIT_CANNOT, "`%s` cannot name a package, whose own files begin with `attn_`; give the model "
                                 "another name", name);
    check_arguments(package->c->model);
    const Use use = use_of(package);
    TemplateVars *vars = variables(package, &use);
    const PackageFile own[] = {{"pyproject.toml", expanded(package, "pyproject.toml.tmpl", vars)},
                               {"setup.py", filled(package, &use, "python_setup.py.tmpl")},
                               {inner(package, "__init__.py"), filled(package, &use, "python_init.py.tmpl")},
                               {inner(package, "__init__.pyi"), expanded(package, "python_init.pyi.tmpl", vars)},
                               {inner(package, "py.typed"), ""},
                               {inner(package, "_core.c"), expanded(package, "python_core.c.tmpl", vars)}};
    const struct {
        const char *name;
        bool wanted;
    } shared[] = {{"attn_py.h", true}, {"attn_py_buffer.h", true}, {"attn_py_buffer.c", true},
                  {"attn_py_given.c", true}, {"attn_py_result.c", true}, {"attn_py_model.c", true},
                  {"attn_py_object.c", true},
                  {"attn_py_state.c", use.states}, {"attn_py_generate.c", use.writes},
                  {"attn_py_search.h", use.writes}, {"attn_py_search.c", use.writes},
                  {"attn_py_text.c", use.tokenizes}, {"attn_py_stream.c", use.tokenizes},
                  {"attn_py_writing.c", use.tokenizes && use.writes},
                  {"attn_py_sound.c", use.hears}, {"attn_py_transcribe.c", use.transcribes}};
    enum { OWN = sizeof own / sizeof *own, SHARED = sizeof shared / sizeof *shared };
    PackageFile *list = arena_array(package->arena, OWN + SHARED + 1, sizeof *list);
    memcpy(list, own, sizeof own);
    int n = OWN;
    for (int i = 0; i < SHARED; i++) {
        const char *template = arena_printf(package->arena, "%s.tmpl", shared[i].name);
        if (shared[i].wanted) list[n++] = (PackageFile){inner(package, shared[i].name), embedded_file(template)};
    }
    return list;
}

const PackageKind package_python = {NULL, files};
