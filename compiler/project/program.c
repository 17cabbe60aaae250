/* program.c: main.c of a project, from the template main.c.tmpl, and its Makefile. */
#include "../emit/emit.h"
#include "../emit/template.h"
#include "project.h"

#include <string.h>

enum { MOST_BYTES = 1 << 20 };

static const char *const tasks[] = {"embed", "classify", "rerank", "generate", "translate", "transcribe"};

const char *project_spelled(Arena *arena, const char *text) {
    Text out = text_new(arena);
    for (; *text; text++) {
        const unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\' || c == '?') text_printf(&out, "\\%c", c);
        else if (c < ' ' || c > '~') text_printf(&out, "\\%03o", c);
        else text_add(&out, text, 1);
    }
    return out.data;
}

/* The rules of attn_tokenizer_open_with that the spec states, in C. */
static const char *text_rules_in_c(const TextRules *rules) {
    static const char *const words[] = {"0", "ATTN_TOKENIZER_LOWER_CASE", "ATTN_TOKENIZER_TRUNCATE_LEFT",
                                        "ATTN_TOKENIZER_LOWER_CASE | ATTN_TOKENIZER_TRUNCATE_LEFT"};
    return words[text_rules_number(rules)];
}

static bool writes(const Project *p) {
    return p->task == TASK_GENERATE || p->task == TASK_TRANSLATE || p->task == TASK_TRANSCRIBE;
}

/* The output that the program shows. */
static const char *output_of(const Project *p) { return p->model->head.classifier ? "logits" : "pooled"; }

static void set_tokens(TemplateVars *vars, const char *name, TokenList tokens, const char **codes) {
    TemplateList *list = vars_list(vars, name);
    for (int64_t i = 0; i < tokens.count; i++) {
        TemplateVars *record = list_record(list);
        vars_int(record, "id", tokens.ids[i]);
        if (codes) vars_text(record, "code", codes[i]);
    }
}

/* The languages of a speech model, or of one that translates. */
static void set_languages(const Project *p, TemplateVars *vars) {
    const bool listens = p->task == TASK_TRANSCRIBE;
    const TokenList languages = listens ? p->speech.languages : p->languages;
    const char *const *given = listens ? p->speech.codes : p->codes;
    const char **codes = arena_array(p->arena, (size_t)languages.count + 1, sizeof *codes);
    Text some = text_new(p->arena);
    bool starts = false; /* whether what is written begins with a code in place of a start token */
    for (int64_t i = 0; i < languages.count; i++) {
        codes[i] = project_spelled(p->arena, given[i]);
        starts |= languages.ids[i] == p->model->start;
        if (i < 5) text_printf(&some, "%s%s", i ? ", " : "", codes[i]);
    }
    set_tokens(vars, "languages", languages, codes);
    vars_text(vars, "languages_example", languages.count ? codes[0] : "");
    vars_text(vars, "languages_some", some.data);
    vars_int(vars, "languages_start", starts && !p->languages_lead);
    vars_int(vars, "languages_lead", p->languages_lead);
}

static void set_speech(const Speech *s, TemplateVars *vars) {
    vars_int(vars, "end_token", s->end);
    vars_int(vars, "no_times", s->no_times);
    vars_int(vars, "latest_first", s->latest_first);
    vars_int(vars, "language", s->language);
    vars_int(vars, "transcribe", s->transcribe);
    vars_int(vars, "translate", s->translate);
    vars_text(vars, "least_log_probability", s->least_log_probability ? s->least_log_probability : "");
    vars_text(vars, "most_compression", s->most_compression ? s->most_compression : "");
    vars_text(vars, "most_no_speech", s->most_no_speech ? s->most_no_speech : "");
    set_tokens(vars, "never", s->never, NULL);
    set_tokens(vars, "never_first", s->never_first, NULL);
}

const char *project_main(const Project *p) {
    const Model *m = p->model;
    const Stack *reader = project_text_stack(m);
    TemplateVars *vars = vars_new(p->arena, NULL);
    vars_text(vars, "p", m->name);
    vars_text(vars, "P", upper_case(p->arena, m->name));
    vars_text(vars, "version", ATTNC_VERSION);
    vars_text(vars, "mark", PROJECT_MARK);
    vars_text(vars, "task", tasks[p->task]);
    vars_text(vars, "tokenizer", p->tokenizer.name);
    vars_text(vars, "prompt", project_spelled(p->arena, text_prompt(&m->text)));
    vars_text(vars, "rules", text_rules_in_c(&m->text));
    vars_text(vars, "output", output_of(p));
    vars_text(vars, "OUTPUT", upper_case(p->arena, output_of(p)));
    vars_int(vars, "writes", writes(p));
    vars_int(vars, "segments", reader->segments > 1);
    vars_int(vars, "each", p->each);
    vars_int(vars, "squashed", p->squashed);
    vars_int(vars, "start", m->start >= 0);
    vars_int(vars, "samples", m->generation.sample);
    vars_int(vars, "beams", m->generation.beams ? m->generation.beams : 1);
    vars_int(vars, "weighs_lengths", m->generation.beams || m->generation.has_length_penalty);
    vars_int(vars, "limited", generation_bounds(&m->generation));
    vars_int(vars, "vocab", reader->vocab);
    set_languages(p, vars);
    int bytes = 1; /* of a token's id */
    for (int64_t ids = 256; ids <= reader->vocab; ids *= 256) bytes++;
    vars_int(vars, "token_bytes", bytes);
    if (p->task == TASK_TRANSCRIBE) set_speech(&p->speech, vars);
    TemplateList *labels = vars_list(vars, "labels");
    for (int64_t i = 0; p->labels && i < m->head.classifier; i++)
        vars_text(list_record(labels), "text", project_spelled(p->arena, p->labels[i]));
    return project_marked(p->arena, template_expanded(p->arena, "main.c.tmpl", MOST_BYTES, "main.c", vars));
}

const char *const *project_sources(const Project *p, bool tokenizer) {
    if (tokenizer) return tokenizer_files;
    return runtime_files(p->arena, p->task == TASK_TRANSCRIBE ? RUNTIME_SOUND
                                   : writes(p)                ? RUNTIME_SEARCH
                                                              : RUNTIME_THREADS);
}

const char *project_makefile(const Project *p, const char *cc) {
    const char *name = p->model->name;
    const bool listens = p->task == TASK_TRANSCRIBE;
    Text out = text_new(p->arena);
    text_printf(&out, "# make builds %s, which needs Oniguruma, cJSON%s utf8proc%s (on Debian libonig-dev,\n"
                      "# libcjson-dev, libutf8proc-dev%s).\n"
                      "# " PROJECT_MARK ", by which `attnc get` knows a Makefile that nobody has changed.\n"
                      "CC = %s\nCFLAGS = -O2\nSOURCES = main.c %s.c",
                name, listens ? "," : " and", listens ? ", libsndfile, libsamplerate and zlib" : "",
                listens ? ", libsndfile1-dev, libsamplerate0-dev, zlib1g-dev" : "", cc, name);
    for (const char *const *file = project_sources(p, false); *file; file++)
        if (text_ends(*file, ".c")) text_printf(&out, " %s", *file);
    text_printf(&out, " \\\n    $(wildcard tokenizer/*.c)\n\n"
                      "%s: $(SOURCES) $(wildcard *.h tokenizer/*.h)\n"
                      "\t$(CC) -std=c11 $(CFLAGS) -Itokenizer $(SOURCES) -o $@ \\\n"
                      "\t    -lonig -lcjson -lutf8proc%s -lpthread -lm\n\n"
                      "clean:\n\trm -f %s\n\n.PHONY: clean\n",
                name, listens ? " -lsndfile -lsamplerate -lz" : "", name);
    return project_marked(p->arena, out.data);
}

const char *project_example(const Project *p, const char *folder) {
    switch (p->task) {
    case TASK_EMBED: return "A text.";
    case TASK_CLASSIFY: return "I like it.";
    case TASK_RERANK: return "Where is the sun?\tThe sun is in the sky.";
    case TASK_GENERATE: return "Once upon a time";
    case TASK_TRANSLATE: return "Hello, world.";
    case TASK_TRANSCRIBE: return arena_printf(p->arena, "%s/" EXAMPLE_SOUND, folder);
    }
    bug("no example for task %d", (int)p->task);
}
