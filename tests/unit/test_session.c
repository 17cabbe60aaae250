/* test_session.c: decoding from a state, against whole passes; and what a state promises when it is copied, rewound,
 * given another source, or used wrongly. */
#include "fixture.h"

#include <math.h>
#include <stdlib.h>

enum { ROOM = 16 }; /* no stack here is longer */

static Module *module;
static Weights *weights;
static const char *now;    /* the case, for messages */
static int64_t prefix;     /* prefix_length of every call */
static uint64_t inputs_of; /* seed of what is fed */

static int begin_inputs(void **state) {
    prefix = 0;
    inputs_of = 1;
    return begin(state);
}

static void restart(void) { end(NULL), begin_inputs(NULL); }

static void load(const char *name, const char *text) {
    now = name;
    Compilation c = compiled_source(source_from_text(arena, name, text, strlen(text)), STAGE_REWRITE);
    module = c.module;
    if (!module->entries[ENTRY_DECODE]) fail_msg("%s: %s", name, module->no_decode);
    weights = weights_load(arena, c.model, &module->weights, "random:5", false);
}

/* ------------------------------------------------------------------ what is fed */

/* `rows` rows from row `first` on, always the same ones of a name. The target of a whole pass is a decode's tokens. */
static InputArray fed(const Graph *graph, const GraphInput *input, int64_t first, int64_t rows) {
    const Tensor *t = &graph->tensors[input->tensor];
    const char *name = input->kind->role == IN_target ? "tokens" : input->kind->name;
    bool fixed = input->kind->rows == PER_SEQUENCE;
    InputArray array = {input->kind->role, t->dtype, fixed ? t->dims[0].n : rows, &prefix};
    if (input->kind->role == IN_prefix_length) return array;
    if (t->dtype == DTYPE_F32) {
        int64_t columns = t->dims[1].n * (t->rank == 3 ? t->dims[2].n : 1);
        float *all = arena_array(arena, (size_t)(ROOM * columns), sizeof *all);
        random_normal(inputs_of, name, 0, 1, ROOM * columns, all);
        array.data = all + (fixed ? 0 : first * columns);
        return array;
    }
    int64_t *ids = arena_array(arena, (size_t)rows, sizeof *ids), limit = graph_table_rows(graph, input);
    for (int64_t i = 0; i < rows; i++) {
        int64_t key[] = {first + i, (int64_t)inputs_of};
        uint64_t seed = hash_bytes(hash_bytes(0, name, strlen(name)), key, sizeof key);
        ids[i] = (int64_t)((seed >> 20) % (uint64_t)limit);
    }
    array.data = ids;
    return array;
}

typedef struct Inputs {
    InputArray arrays[MAX_GRAPH_INPUTS];
    int count;
} Inputs;

static Inputs feed(const Graph *graph, int64_t first, int64_t rows, int64_t source_rows) {
    Inputs in = {.count = graph->n_inputs};
    for (int i = 0; i < in.count; i++) {
        bool of_source = graph->inputs[i].of_source;
        in.arrays[i] = fed(graph, &graph->inputs[i], of_source ? 0 : first, of_source ? source_rows : rows);
    }
    return in;
}

static Interpretation *whole(int64_t n, int64_t source_rows) {
    const Graph *graph = module->entries[ENTRY_FORWARD];
    Inputs in = feed(graph, 0, n, source_rows);
    int64_t symbols[4] = {0};
    for (int s = 0; s < graph->n_symbols; s++)
        symbols[s] = strcmp(graph->symbols[s].name, "src") == 0 ? source_rows : n;
    return interpret(arena, module, graph, weights, in.arrays, in.count, symbols);
}

static Interpretation *decode(Session *session, int64_t rows) {
    Inputs in = feed(module->entries[ENTRY_DECODE], session_rows(session), rows, 0);
    return session_decode(arena, session, in.arrays, in.count, rows);
}

static Interpretation *encode(Session *session, int64_t rows) {
    Inputs in = feed(module->entries[ENTRY_ENCODE], 0, rows, 0);
    return session_encode(arena, session, in.arrays, in.count, rows);
}

/* ------------------------------------------------------------------ comparing */

static void near(double found, double wanted, const char *what, int64_t row) {
    if (!(fabs(found - wanted) <= 1e-12 * (1 + fabs(wanted))))
        fail_msg("%s: %s, row %lld: %.17g is not %.17g", now, what, (long long)row, found, wanted);
}

static const OutputArray *output_of(const Interpretation *result, OutputRole role, int layer) {
    for (int o = 0; o < result->n_outputs; o++)
        if (result->outputs[o].role == role && result->outputs[o].layer == layer) return &result->outputs[o];
    fail_msg("%s: no output %s", now, output_name(role));
    return NULL;
}

/* Every output of rows past, past + 1, ... against those rows of a whole pass. */
static void same_rows(const Interpretation *part, const Interpretation *all, int64_t past, int64_t rows) {
    for (int o = 0; o < part->n_outputs; o++) {
        const OutputArray *p = &part->outputs[o], *w = output_of(all, p->role, p->layer);
        const int64_t *d = p->shape.dims, *e = w ? w->shape.dims : d;
        int64_t last = p->shape.rank - 1;
        bool logits = p->role == OUT_logits, own = p->role == OUT_attention;
        assert_int_equal(d[last - 1], logits ? 1 : rows);
        assert_int_equal(d[last], last == 1 ? e[1] : own ? past + rows : e[2]);
        for (int64_t h = 0; h < (last == 2 ? d[0] : 1); h++)
            for (int64_t i = 0; i < d[last - 1]; i++) {
                int64_t row = logits ? past + rows - 1 : past + i;
                const double *x = p->data + (h * d[last - 1] + i) * d[last];
                const double *y = w->data + (h * e[last - 1] + row) * e[last];
                for (int64_t c = 0; c < d[last]; c++) near(x[c], y[c], output_name(p->role), row);
                for (int64_t c = d[last]; c < e[last]; c++) near(0, y[c], output_name(p->role), row);
            }
    }
}

static int64_t bound(void) { return module->model->decoder->seq.n; }

/* A prefill of `first` rows, then chunks of `cycle`'s sizes over and over up to the bound. passes[n]: of n rows. */
static void check_split(Interpretation *const *passes, int64_t source_rows, int64_t first, const char *cycle) {
    Session *session = session_new(arena, module, weights);
    if (module->entries[ENTRY_ENCODE]) {
        const OutputArray *rows = output_of(encode(session, source_rows), OUT_encoder_hidden, -1);
        const OutputArray *wanted = output_of(passes[bound()], OUT_encoder_hidden, -1);
        for (int64_t i = 0; i < rows->shape.dims[0] * rows->shape.dims[1]; i++)
            near(rows->data[i], wanted->data[i], "encoder_hidden", i / rows->shape.dims[1]);
    }
    for (int64_t past = 0, rows = first, turn = 0; past < bound(); past += rows, turn++) {
        if (turn) rows = cycle[(size_t)(turn - 1) % strlen(cycle)] - '0';
        if (rows > bound() - past) rows = bound() - past;
        same_rows(decode(session, rows), passes[past + rows], past, rows);
        assert_int_equal(session_rows(session), past + rows);
    }
    session_free(session);
}

static void passes_of(Interpretation **passes, int64_t source_rows) {
    Length seq = module->model->decoder->seq;
    passes[0] = whole(seq.exact ? seq.n : 1, source_rows);
    for (int64_t n = 1; n <= ROOM; n++)
        passes[n] = seq.exact || n > seq.n ? passes[n - 1] : whole(n, source_rows);
}

/* Each first length, then steps; and chunks of several kinds. */
static void check_splits(int64_t source_rows) {
    static const char *const cycles[] = {"1", "14", "2", "311"};
    Interpretation *passes[ROOM + 1];
    passes_of(passes, source_rows);
    for (int64_t first = prefix > 1 ? prefix : 1; first <= bound(); first++)
        for (size_t c = 0; c < (first == 1 || first == 3 ? 4 : 1); c++)
            check_split(passes, source_rows, first, cycles[c]);
}

/* ------------------------------------------------------------------ decoders against whole passes */

typedef struct Case {
    const char *name, *text;
} Case;

#define DECODER(of_model, settings) "model m { d_model 8, vocab 9, " of_model "\n decoder { seq <= 11, " settings " } }"
#define FFN "ffn { d_ff 10, activation silu gated }"
#define TWO(settings, others) \
    DECODER("head logits", "layers 2 {\n layer { attention self { " settings " }, " FFN " }\n" \
                           "layer { attention self { " others " }, ffn { d_ff 7, activation gelu } } }")
#define TWICE(settings) TWO(settings, settings)

static const Case decoders[] = {
    {"one head", TWICE("heads 1")},
    {"groups and widths",
     TWO("heads 4, kv_heads 2, head_dim 3, value_dim 5", "heads 3, kv_heads 1, head_dim 5, value_dim 2")},
    {"windows",
     DECODER("",
             "export attention, layers 5 {\n layer { attention self { heads 2, window 3 } }\n"
             "layer { attention self { heads 2, kv_heads 1 } }\n layer { attention self { heads 2, window 1 } } }")},
    {"window with sinks", TWO("heads 2, window 2, sink 2", "heads 2, mask window 4 causal, sink 1, position rope")},
    {"learned sinks", TWO("heads 4, kv_heads 2, sink learned", "heads 2, sink learned, window 3, softcap 2")},
    {"caps and scales", TWO("heads 2, softcap 1.5", "heads 2, score dot, scale 0.3")},
    {"bounds", TWO("heads 2, clip 0.5", "heads 4, kv_heads 2, clip 0.3, qk_norm rmsnorm, position rope")},
    {"norms of a head", TWO("heads 2, qk_norm rmsnorm", "heads 4, kv_heads 2, qk_norm layernorm")},
    {"norms of rotated heads", TWO("heads 2, qk_norm rmsnorm after_rotation, position rope, inner_norm rmsnorm",
                                   "heads 4, kv_heads 2, qk_norm layernorm all_heads after_rotation, position rope")},
    {"norms of all heads", TWO("heads 4, kv_heads 2, qk_norm rmsnorm all_heads plus_one, position rope",
                               "heads 2, qk_norm layernorm all_heads no_bias eps 1e-3")},
    {"norms with weights a head",
     TWO("heads 4, kv_heads 2, qk_norm layernorm weight_per_head", "heads 2, qk_norm rmsnorm weight_per_head")},
    {"rope", TWO("heads 2, position rope theta 100", "heads 2, kv_heads 1, head_dim 6, position rope interleaved")},
    {"rope in part", TWO("heads 2, head_dim 7, position rope partial 0.6",
                         "heads 1, head_dim 6, window 3, position rope interleaved partial 0.4")},
    {"rope linear, llama3", TWO("heads 2, head_dim 8, position rope linear factor 3",
                                "heads 2, head_dim 8, position rope llama3 factor 8 original 40")},
    {"rope yarn", TWO("heads 2, head_dim 8, position rope yarn factor 4 original 50",
                      "heads 2, head_dim 8, position rope yarn factor 4 original 50 untruncated attention_factor 1.2")},
    {"longrope within", TWICE("heads 2, position rope longrope factor 2 original 11 short 1 1.5 long 2 4")},
    {"alibi", TWO("heads 4, position alibi, softcap 2",
                  "heads 3, head_dim 4, position alibi scaled max 4, window 4, sink learned")},
    {"relative, shared", TWICE("heads 2, position relative buckets 6 distance 8")},
    {"relative, a table a layer",
     TWO("heads 2, position relative per_layer",
         "heads 4, kv_heads 1, window 5, position relative per_layer buckets 5 distance 7")},
    {"learned positions",
     DECODER("head logits",
             "position learned offset 2, embedding normalized, layers 1 { attention self { heads 2 } }")},
    {"projected embedding",
     DECODER("", "position learned, embedding factor 6 scale 2, layers 1 { attention self { heads 2 } }")},
    {"sinusoids", DECODER("", "position sinusoidal offset 3, layers 1 { attention self { heads 2 } }")},
    {"sinusoids in halves", DECODER("", "position sinusoidal halves, layers 1 { attention self { heads 2 } }")},
    {"sinusoids of fairseq",
     DECODER("", "position sinusoidal fairseq offset 2, layers 1 { attention self { heads 2 } }")},
    {"parallel",
     DECODER("", "block parallel, layers 2 {\n layer { attention self { heads 2 }, " FFN " }\n"
                 "layer { block parallel shared_norm, attention self { heads 2, position rope }, " FFN " } }")},
    {"shared layers", DECODER("head logits", "layers 3 shared { attention self { heads 2, window 4 }, " FFN " }")},
    {"norm post", DECODER("norm layernorm post no_bias eps 1e-3", "layers 2 { attention self { heads 2 }, " FFN " }")},
    {"norm after", DECODER("norm rmsnorm after", "layers 2 { attention self { heads 2 }, " FFN " }")},
    {"norm both", DECODER("norm rmsnorm both plus_one", "layers 2 { attention self { heads 2 }, " FFN " }")},
    {"norm none",
     DECODER("norm none", "final_norm yes, layers 2 { attention self { heads 2, residual scale 0.5 }, " FFN " }")},
    {"two of a kind",
     DECODER("", "layers 2 { attention self { heads 2 }, attention self { heads 1, window 2 }, " FFN ", " FFN " }")},
    {"no output",
     DECODER("",
             "layers 1 { attention self { heads 3, head_dim 2, value_dim 3, bias q v, output none, residual no } }")},
    {"rows as they come", DECODER("norm none", "input features, layers 1 { attention self { project none } }")},
    {"features",
     DECODER("", "input features, embedding scale 3, position sinusoidal, layers 1 { attention self { heads 2 } }")},
    {"segments", DECODER("head logits", "segments 3, layers 1 { attention self { heads 2 } }")},
    {"tied head", DECODER("head logits tied bias scale 0.5 softcap 3",
                          "embedding scale sqrt(d_model), layers 1 { attention self { heads 2 } }")},
    {"exact length", "model m { d_model 8, vocab 9, head logits, decoder { seq = 9, position learned\n"
                     "layers 2 { attention self { heads 2, window 4, position rope }, " FFN " } } }"},
    {"no attention", DECODER("head logits", "position sinusoidal, layers 1 { " FFN " }")},
};

static void decoders_as_whole_passes(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof decoders / sizeof *decoders; i++) {
        restart();
        load(decoders[i].name, decoders[i].text);
        check_splits(0);
    }
}

static const Case prefixed[] = {
    {"prefix", TWO("heads 2, mask prefix", "heads 4, kv_heads 1, mask prefix, position rope")},
    {"prefix and window", TWO("heads 2, mask prefix, window 3, sink 1", "heads 2, mask causal, position alibi")},
    {"prefix, relative", TWICE("heads 2, mask prefix, position relative buckets 6 distance 8")},
};

/* The rows of a prefix see each other, so that they come in the first call. */
static void prefixes(void **state) {
    (void)state;
    static const int64_t lengths[] = {0, 1, 2, 3, 4, 10, 11};
    for (size_t i = 0; i < sizeof prefixed / sizeof *prefixed; i++)
        for (size_t p = 0; p < sizeof lengths / sizeof *lengths; p++) {
            restart();
            load(prefixed[i].name, prefixed[i].text);
            prefix = lengths[p];
            check_splits(0);
        }
}

/* ------------------------------------------------------------------ encoder and decoder */

#define BOTH(of_model, encoder, self, cross) \
    "model m { d_model 8, vocab 9, " of_model "\n encoder { " encoder " }\n" \
    "decoder { seq <= 7, layers 2 { attention self { heads 2, " self " }, attention cross { " cross " }, " FFN \
    " } } }"
#define SOURCE "seq <= 5, layers 1 { attention self { heads 2 }, " FFN " }"

static const Case pairs[] = {
    {"cross", BOTH("head logits, export attention", SOURCE, "window 3", "heads 2")},
    {"cross, grouped",
     BOTH("norm rmsnorm post", SOURCE, "position rope", "heads 4, kv_heads 2, head_dim 3, value_dim 5, softcap 2")},
    {"cross, norms and sinks",
     BOTH("embedding tied, head logits tied", SOURCE, "sink learned", "heads 2, qk_norm rmsnorm, sink learned")},
    {"cross, dot", BOTH("", SOURCE, "", "heads 2, score dot, scale 0.7")},
    {"cross, dot of rows", BOTH("", SOURCE, "", "score dot, project none")},
    {"cross, general", BOTH("", SOURCE, "", "score general, heads 1")},
    {"cross, additive", BOTH("", SOURCE, "", "score additive, d_score 5")},
    {"cross, projected behind", BOTH("", SOURCE, "", "score additive, d_score 5, output projected, softcap 1")},
    {"positions in both", BOTH("position sinusoidal", SOURCE, "", "heads 2")},
    {"relative in both", BOTH("position relative buckets 6 distance 9", SOURCE, "", "heads 2")},
    {"rope in both", BOTH("position rope", SOURCE, "", "heads 2, kv_heads 1")},
    {"narrow source",
     BOTH("", "seq <= 5, layers 1 { attention self { heads 3, head_dim 4, value_dim 2, output none, residual no } }",
          "", "heads 2")},
    {"source of features", BOTH("", "input features, " SOURCE, "", "heads 2")},
    {"source of segments", BOTH("", "segments 2, " SOURCE, "", "heads 2")},
    {"shared layers",
     "model m { d_model 8, vocab 9, encoder { " SOURCE " }\n decoder { input features, seq <= 7, norm post\n"
     "layers 2 shared { attention self { heads 2 }, attention cross { heads 2 }, " FFN " } } }"},
    {"no self attention",
     "model m { d_model 8, vocab 9, encoder { " SOURCE " }\n"
     "decoder { seq <= 7, position learned, segments 2, layers 2 { attention cross { heads 2 } } } }"},
};

static void pairs_as_whole_passes(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        for (int64_t source_rows = 1; source_rows <= 5; source_rows++) {
            restart();
            load(pairs[i].name, pairs[i].text);
            check_splits(source_rows);
        }
    restart();
    load("source of 3", BOTH("", "seq = 3, layers 1 { attention self { heads 2 } }", "", "heads 2"));
    check_splits(3);
    restart();
    load("source of an image",
         BOTH("", "input patches image 4 patch 2 class, layers 1 { attention self { heads 2 } }", "", "heads 2"));
    check_splits(5);
    restart();
    load("prefix in both",
         BOTH("", "seq <= 5, layers 1 { attention self { heads 2, mask prefix } }", "mask prefix", "heads 2"));
    prefix = 3;
    check_splits(5);
}

/* ------------------------------------------------------------------ copies, ways back, other sources */

static Interpretation *decode_others(Session *session, uint64_t seed, int64_t rows) {
    uint64_t before = inputs_of;
    inputs_of = seed;
    Interpretation *result = decode(session, rows);
    inputs_of = before;
    return result;
}

static void same_outputs(const Interpretation *a, const Interpretation *b) {
    assert_int_equal(a->n_outputs, b->n_outputs);
    for (int o = 0; o < a->n_outputs; o++) {
        int64_t count = 0;
        assert_true(shape_equal(a->outputs[o].shape, b->outputs[o].shape));
        assert_true(shape_elements(a->outputs[o].shape, &count));
        assert_memory_equal(a->outputs[o].data, b->outputs[o].data, (size_t)count * sizeof(double));
    }
}

static bool differs(const Interpretation *a, const Interpretation *b) {
    return output_of(a, OUT_hidden, -1)->data[0] != output_of(b, OUT_hidden, -1)->data[0];
}

static Session *session_of(int64_t source_rows) {
    Session *session = session_new(arena, module, weights);
    if (source_rows) encode(session, source_rows);
    return session;
}

static const Case mixed[] = {
    {"a decoder", TWO("heads 2, window 3, sink 1, position rope", "heads 4, kv_heads 2, position alibi")},
    {"a pair", BOTH("head logits", SOURCE, "position rope", "heads 2")},
};

/* Other tokens behind a common beginning: the two go apart, and each is what it would be alone. */
static void forks(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof mixed / sizeof *mixed; i++) {
        restart();
        load(mixed[i].name, mixed[i].text);
        int64_t source_rows = module->entries[ENTRY_ENCODE] ? 4 : 0;
        Session *trunk = session_of(source_rows), *branch = session_new(arena, module, weights),
                *alone = session_of(source_rows);
        decode(trunk, 3), decode(alone, 3);
        /* what it held before does not count */
        if (module->entries[ENTRY_ENCODE]) encode(branch, 2), decode(branch, 1);
        session_copy(branch, trunk);
        assert_int_equal(session_rows(branch), 3);
        Interpretation *a = decode(trunk, 2), *b = decode_others(branch, 9, 2);
        assert_true(differs(a, b));
        same_outputs(decode(trunk, 1), (decode(alone, 2), decode(alone, 1)));
        session_rewind(alone, 3);
        same_outputs(decode_others(alone, 9, 2), b);
        same_outputs(decode(alone, 1), decode(branch, 1));
        session_free(trunk); /* the branch lives on */
        session_copy(branch, branch);
        same_outputs(decode(alone, 1), decode(branch, 1));
        session_free(branch), session_free(alone);
    }
}

static void rewinds(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof mixed / sizeof *mixed; i++)
        for (int64_t back = 0; back <= 5; back++) {
            restart();
            load(mixed[i].name, mixed[i].text);
            int64_t source_rows = module->entries[ENTRY_ENCODE] ? 4 : 0;
            Session *session = session_of(source_rows), *fresh = session_of(source_rows),
                    *copied = session_new(arena, module, weights);
            decode(session, 2), decode(session, 4);
            if (back) decode(fresh, back);
            session_rewind(session, back);
            assert_int_equal(session_rows(session), back);
            session_copy(copied, session); /* of a state that holds less than it did */
            Interpretation *wanted = decode_others(fresh, 9, 1);
            same_outputs(decode_others(session, 9, 1), wanted);
            same_outputs(decode_others(copied, 9, 1), wanted);
            same_outputs(decode(session, 6 - back), decode(fresh, 6 - back));
            session_free(session), session_free(fresh), session_free(copied);
        }
}

static void another_source(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        restart();
        load(pairs[i].name, pairs[i].text);
        Session *session = session_of(5), *fresh = session_new(arena, module, weights);
        Interpretation *first = decode(session, 4);
        inputs_of = 9;
        same_outputs(encode(session, 3), encode(fresh, 3));
        assert_int_equal(session_rows(session), 0);
        Interpretation *second = decode(session, 4);
        same_outputs(second, decode(fresh, 4));
        assert_true(differs(first, second));
        same_outputs(decode(session, 1), decode(fresh, 1));
        session_free(session), session_free(fresh);
    }
}

/* What a result holds stays when the session goes on, and nothing in it belongs to the session. */
static void results_stay(void **state) {
    (void)state;
    load("a pair", BOTH("head logits", SOURCE, "", "heads 2"));
    Session *session = session_of(3);
    decode(session, 2);
    Interpretation *result = decode(session, 2);
    const Graph *graph = module->entries[ENTRY_DECODE];
    for (int s = 0; s < graph->n_states; s++) {
        if (graph->states[s].in != NO_TENSOR) assert_null(result->tensors[graph->states[s].in]);
        if (graph->states[s].out != NO_TENSOR) assert_non_null(result->tensors[graph->states[s].out]);
    }
    decode(session, 1), encode(session, 2), session_free(session);
    same_rows(result, whole(4, 3), 2, 2);
}

/* ------------------------------------------------------------------ failures */

typedef struct Attempt {
    Session *session;
    Inputs in;
    int64_t rows;
    enum { DECODE, ENCODE, REWIND, NEW, COPY } what;
    Session *other;
} Attempt;

static void refused(const Attempt *a, int status, const char *message) {
    if (failure_trap(&trap) == 0) {
        switch (a->what) {
        case DECODE: session_decode(arena, a->session, a->in.arrays, a->in.count, a->rows); break;
        case ENCODE: session_encode(arena, a->session, a->in.arrays, a->in.count, a->rows); break;
        case REWIND: session_rewind(a->session, a->rows); break;
        case NEW: session_new(arena, module, weights); break;
        case COPY: session_copy(a->session, a->other); break;
        }
        failure_release(&trap);
        fail_msg("%s: not refused: %s", now, message);
    }
    assert_string_equal(trap.message, message);
    assert_int_equal(trap.status, status);
}

static void refused_rows(Session *session, int64_t fed_rows, int64_t rows, const char *message) {
    const Inputs in = feed(module->entries[ENTRY_DECODE], 0, fed_rows, 0);
    refused(&(Attempt){.session = session, .in = in, .rows = rows}, EXIT_USER,
            message);
}

static void refused_rewind(Session *session, int64_t rows, const char *message) {
    refused(&(Attempt){.session = session, .rows = rows, .what = REWIND}, EXIT_USER, message);
}

/* After refusals a step gives what it gives in a session that was never asked. */
static void unharmed(Session *session, int64_t source_rows) {
    Session *fresh = session_of(source_rows);
    decode(fresh, session_rows(session));
    Session *kept = session_new(arena, module, weights);
    session_copy(kept, session);
    same_outputs(decode(kept, 2), decode(fresh, 2));
    session_free(fresh), session_free(kept);
}

static void refused_decodes(void **state) {
    (void)state;
    load("a decoder", TWO("heads 2, position rope", "heads 2, window 3"));
    Session *session = session_of(0);
    refused_rows(session, 12, 12, "12 more rows do not fit: the state holds 0 of 11");
    refused_rewind(session, 1, "a state of 0 rows cannot go back to 1");
    decode(session, 4);
    refused_rows(session, 8, 8, "8 more rows do not fit: the state holds 4 of 11");
    refused_rows(session, 8, INT64_MAX, "9223372036854775807 more rows do not fit: the state holds 4 of 11");
    refused_rows(session, 0, 0, "the length rows is 0; it must be 1 to 11");
    refused_rows(session, 1, -1, "the length rows is -1; it must be 1 to 11");
    refused_rows(session, 2, 3, "input tokens has 2 rows; it must have 3");
    refused_rewind(session, 5, "a state of 4 rows cannot go back to 5");
    refused_rewind(session, -1, "a state of 4 rows cannot go back to -1");
    Attempt a = {.session = session, .rows = 2, .in = feed(module->entries[ENTRY_DECODE], 4, 2, 0)};
    a.in.arrays[0].data = (const int64_t[]){0, 9};
    refused(&a, EXIT_USER, "input tokens: id 9 at 1 is outside 0 to 8");
    a.in.arrays[0].data = (const int64_t[]){-1, 0};
    refused(&a, EXIT_USER, "input tokens: id -1 at 0 is outside 0 to 8");
    a.in.count = 0;
    refused(&a, EXIT_USER, "input tokens is missing");
    a.what = ENCODE;
    refused(&a, EXIT_USER, "a decoder alone has no source");
    assert_int_equal(session_rows(session), 4);
    unharmed(session, 0);
    decode(session, 7);
    refused_rows(session, 1, 1, "1 more rows do not fit: the state holds 11 of 11");
    session_free(session);
}

/* Factors of the length: a whole pass is met on both sides of `original`, and a state is not carried across it. */
static void longrope_at_its_bound(void **state) {
    (void)state;
    load("longrope", TWICE("heads 2, position rope longrope factor 2 original 5 short 1 1.5 long 2 4"));
    Interpretation *passes[ROOM + 1];
    passes_of(passes, 0);
    for (int64_t first = 1; first <= 11; first++) {
        Session *session = session_new(arena, module, weights);
        int64_t until = first <= 5 ? 5 : 11;
        same_rows(decode(session, first), passes[first], 0, first);
        for (int64_t past = first; past < until; past++) same_rows(decode(session, 1), passes[past + 1], past, 1);
        if (first <= 5) {
            refused_rows(session, 6, 1,
                         "rows beyond 5 are turned by other angles: rewind to 0 and give all of them in one call");
            session_rewind(session, 0);
            same_rows(decode(session, 6), passes[6], 0, 6);
        }
        refused_rewind(session, 5, "a state of more than 5 rows, turned by other angles, cannot go back to 5");
        session_rewind(session, 6);
        same_rows(decode(session, 1), passes[7], 6, 1);
        session_free(session);
    }
}

static void refused_sources(void **state) {
    (void)state;
    load("a pair", BOTH("head logits", SOURCE, "", "heads 2"));
    Session *session = session_new(arena, module, weights);
    refused_rows(session, 1, 1, "a step needs a source: none was encoded");
    encode(session, 4), decode(session, 3);
    Attempt a = {.session = session, .rows = 6, .what = ENCODE, .in = feed(module->entries[ENTRY_ENCODE], 0, 6, 0)};
    refused(&a, EXIT_USER, "the length src is 6; it must be 1 to 5");
    a.rows = 0;
    refused(&a, EXIT_USER, "the length src is 0; it must be 1 to 5");
    a.rows = 5;
    refused(&a, EXIT_USER, "input source has 6 rows; it must have 5");
    a.rows = a.in.arrays[0].rows = 2;
    a.in.arrays[0].data = (const int64_t[]){3, 99};
    refused(&a, EXIT_USER, "input source: id 99 at 1 is outside 0 to 8");
    assert_int_equal(session_rows(session), 3);
    unharmed(session, 4);
    Session *before = session;
    load("source of 3", BOTH("", "seq = 3, layers 1 { attention self { heads 2 } }", "", "heads 2"));
    Session *other = session_new(arena, module, weights);
    a = (Attempt){.session = other, .rows = 2, .what = ENCODE, .in = feed(module->entries[ENTRY_ENCODE], 0, 2, 0)};
    refused(&a, EXIT_USER, "the length src is 2; it must be 3");
    refused_rows(other, 1, 1, "a step needs a source: none was encoded");
    a = (Attempt){.session = other, .other = before, .what = COPY};
    refused(&a, EXIT_BUG, "a state is copied to that of another model");
    session_free(before), session_free(other);
}

static void refused_prefixes(void **state) {
    (void)state;
    load("prefix", TWICE("heads 2, mask prefix"));
    Session *session = session_of(0);
    prefix = 4;
    refused_rows(session, 3, 3, "prefix_length is 4; with 3 first rows it must be 0 to 3");
    prefix = -1;
    refused_rows(session, 3, 3, "prefix_length is -1; with 3 first rows it must be 0 to 3");
    prefix = 3;
    Attempt a = {.session = session, .rows = 3, .in = feed(module->entries[ENTRY_DECODE], 0, 3, 0)};
    a.in.count = 1;
    refused(&a, EXIT_USER, "input prefix_length is missing");
    decode(session, 5);
    prefix = 2;
    refused_rows(session, 1, 1, "prefix_length is 2, and the state began with 3");
    prefix = 6;
    refused_rows(session, 1, 1, "prefix_length is 6, and the state began with 3");
    prefix = 3;
    refused_rewind(session, 2, "a state whose prefix is 3 rows cannot go back to 2: each of them has seen all");
    unharmed(session, 0);
    Session *copied = session_of(0);
    session_copy(copied, session);
    refused_rewind(copied, 1, "a state whose prefix is 3 rows cannot go back to 1: each of them has seen all");
    session_rewind(session, 3);
    same_rows(decode(session, 2), whole(5, 0), 3, 2);
    session_rewind(session, 0);
    prefix = 1; /* another beginning, another prefix */
    same_rows(decode(session, 2), whole(2, 0), 0, 2);
    session_free(session), session_free(copied);
}

static void refused_states(void **state) {
    (void)state;
    static const Case without[] = {
        {"no rows can be appended: the model has no decoder", "model m { d_model 8, vocab 9, encoder { " SOURCE " } }"},
        {"no rows can be appended: `unroll full` leaves no room for a state",
         "model m { d_model 8, vocab 9, unroll full, decoder { seq = 4, layers 1 { attention self { heads 2 } } } }"},
        {"no rows can be appended: `mask given` is over whole sequences", TWICE("heads 2, mask causal given")},
    };
    for (size_t i = 0; i < sizeof without / sizeof *without; i++) {
        restart();
        now = without[i].name;
        Source *source = source_from_text(arena, "t", without[i].text, strlen(without[i].text));
        Compilation c = compiled_source(source, STAGE_REWRITE);
        module = c.module;
        refused(&(Attempt){.what = NEW}, EXIT_CANNOT, without[i].name);
    }
}

/* ------------------------------------------------------------------ broken graphs */

static int first_append(void) {
    for (int o = 0; o < module->entries[ENTRY_DECODE]->n_ops; o++)
        if (module->entries[ENTRY_DECODE]->ops[o].kind == OP_append) return o;
    fail_msg("no append");
    return 0;
}

static void unverified(const char *part) {
    REFUSED(verify(module, module->entries[ENTRY_DECODE], "the test"), EXIT_BUG, part);
}

/* Each change is undone again, and the graph is sound before and after. */
#define BROKEN(place, value, part) \
    do { \
        __typeof__(place) whole_ = place; \
        verify(module, module->entries[ENTRY_DECODE], "the test"); \
        place = value; \
        unverified(part); \
        place = whole_; \
        verify(module, module->entries[ENTRY_DECODE], "the test"); \
    } while (0)

static void broken_states(void **state) {
    (void)state;
    load("a pair", BOTH("", SOURCE, "position rope", "heads 2"));
    Graph *g = module->entries[ENTRY_DECODE];
    Op *op = &g->ops[first_append()];
    Tensor *before = &g->tensors[op->inputs[0]], *result = &g->tensors[op->result];
    GraphState *cached = &g->states[0], *of_source = &g->states[2];
    assert_int_equal(cached->in, op->inputs[0]);
    assert_true(of_source->of_source && of_source->out == NO_TENSOR);
    const Op *turn = &g->ops[first_append() - 1];
    assert_int_equal(turn->kind, OP_rope);
    const int rotation[] = {op->inputs[0], turn->inputs[1]}, twice[] = {op->inputs[1], op->inputs[1]};
    BROKEN(op->inputs, rotation, "append of `decoder.layers.0.attention.keys`"); /* of another width */
    BROKEN(of_source->in, NO_TENSOR, "state `decoder.layers.0.cross_attention.keys` is nothing");
    BROKEN(cached->in, op->result, "state `decoder.layers.0.attention.keys` does not come in as one");
    BROKEN(before->kind, TENSOR_INPUT, "append of `decoder.layers.0.attention.keys`");
    BROKEN(op->inputs, twice, "append of `decoder.layers.0.attention.keys`");
    BROKEN(op->n_inputs, 1, "append of `decoder.layers.0.attention.keys`");
    BROKEN(before->dims[1].n, 7, "append of `decoder.layers.0.attention.keys`");
    BROKEN(before->dims[0], result->dims[0], "append of `decoder.layers.0.attention.keys`");
    BROKEN(before->dims[0], ((Dim){0, 3}), "append of `decoder.layers.0.attention.keys`");
    BROKEN(result->dims[0], before->dims[0], "append of `decoder.layers.0.attention.keys`");
    BROKEN(before->dims[0].n, 6, "a symbol and its bound disagree");
    BROKEN(before->dims[0].symbol, g->n_symbols + 1, "has a bad dimension 0");
    for (int o = 0; o < g->n_ops; o++)
        if (g->ops[o].kind == OP_rope) BROKEN(g->ops[o].a.past, g->n_symbols + 1, "rope of");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST_WITH(begin_inputs, decoders_as_whole_passes),
        TEST_WITH(begin_inputs, prefixes),
        TEST_WITH(begin_inputs, longrope_at_its_bound),
        TEST_WITH(begin_inputs, pairs_as_whole_passes),
        TEST_WITH(begin_inputs, forks),
        TEST_WITH(begin_inputs, rewinds),
        TEST_WITH(begin_inputs, another_source),
        TEST_WITH(begin_inputs, results_stay),
        TEST_WITH(begin_inputs, refused_decodes),
        TEST_WITH(begin_inputs, refused_sources),
        TEST_WITH(begin_inputs, refused_prefixes),
        TEST_WITH(begin_inputs, refused_states),
        TEST_WITH(begin_inputs, broken_states),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
