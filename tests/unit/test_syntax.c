/* test_syntax.c: lexer, parser, formatter, expressions, and every default of the language, all in memory. */
#include "fixture.h"

#include <math.h>

static Compilation spec; /* the last one */

static Ast *tree(const char *text) {
    spec = compilation_quiet(arena, source_of(text));
    compile_until(&spec, STAGE_AST);
    return spec.ast;
}

static Model *model(const char *text) {
    spec = compilation_quiet(arena, source_of(text));
    if (!compile_until(&spec, STAGE_MODEL)) fail_msg("%s\n%s", text, spec.diagnostics.log.data);
    return spec.model;
}

static void refused(const char *text, const char *message) {
    spec = compilation_quiet(arena, source_of(text));
    assert_false(compile_until(&spec, STAGE_MODEL));
    assert_null(spec.model);
    const char *found = spec.diagnostics.log.data;
    if (!strstr(found, message)) fail_msg("%s\nshould say: %s\nfound: %s", text, message, found);
}

/* One attention self and one ffn in an encoder or decoder; `top` stands in the model, `inside` in the attention. */
static Model *small(const char *top, const char *stack, const char *inside, const char *ffn) {
    return model(arena_printf(arena,
        "model m { d_model 12, vocab 7\n%s\n%s {\n"
        "seq <= 5, layers 1 { attention self { heads 2 %s }, ffn { d_ff 8 %s } } } }",
                              top, stack, inside, ffn));
}

static const Sublayer *sublayer(const Model *m,
    int index) { return &(m->encoder ? m->encoder : m->decoder)->layers[0].sublayers[index]; }
static const Attention *attention(const Model *m) { return &sublayer(m, 0)->attention; }

/* ------------------------------------------------------------------ lexer and parser */

static void places(void **state) {
    (void)state;
    Ast *ast = tree("\xef\xbb\xbf# one\r\nlet a = 4\nmodel m {\n\td_model a*2, vocab 3 # two\n}\n");
    assert_int_equal(spec.diagnostics.errors, 0);
    const Item *let = ast->items, *m = let->next, *d = m->items, *v = d->next;
    assert_true(let->is_let && !m->is_let && !m->next && !v->next);
    assert_string_equal(let->name, "a");
    assert_int_equal(let->location.line, 2);
    assert_int_equal(let->location.column, 5);
    assert_string_equal(d->name, "d_model");
    assert_int_equal(d->location.line, 4);
    assert_int_equal(d->location.column, 2);
    assert_int_equal(d->location.length, 7);
    assert_int_equal(d->values->location.column, 10);
    assert_int_equal(d->values->location.length, 3);
    assert_int_equal(v->location.column, 15);
    assert_int_equal(m->block_end.line, 5);
    assert_string_equal(ast->comments->text, "# one");
    assert_string_equal(ast->comments->next->text, "# two");
    assert_int_equal(ast->comments->next->location.column, 23);
    assert_null(ast->comments->next->next);
}

static void items(void **state) {
    (void)state;
    Ast *ast = tree("model m { seq = 4, seq <= 5, norm post eps 1e-6,\n"
                    "\"a b\" from \"c\" rows 0..4*2 optional, empty {}, bare }");
    assert_int_equal(spec.diagnostics.errors, 0);
    const Item *i = ast->items->items;
    assert_int_equal(i->relation, RELATION_EQUAL);
    i = i->next;
    assert_int_equal(i->relation, RELATION_AT_MOST);
    i = i->next;
    assert_int_equal(i->relation, RELATION_NONE);
    assert_string_equal(i->values->next->expr->text, "eps");
    assert_int_equal(i->values->next->next->expr->kind, EXPR_REAL);
    assert_null(i->values->next->next->next);
    i = i->next;
    assert_true(i->quoted);
    assert_string_equal(i->name, "a b");
    const Value *v = i->values->next;
    assert_int_equal(v->kind, VALUE_STRING);
    v = v->next->next;
    assert_int_equal(v->kind, VALUE_RANGE);
    assert_int_equal(v->expr->integer, 0);
    assert_int_equal(v->until->kind, EXPR_MUL);
    i = i->next;
    assert_true(i->has_block && !i->items);
    i = i->next;
    assert_true(!i->has_block && !i->values && !i->next);
}

/* A second parse is not touched by what the first one left open. */
static void reentrant(void **state) {
    (void)state;
    for (int i = 0; i < 3; i++) {
        tree("model m { a { b ( \"open");
        assert_true(spec.diagnostics.errors > 0);
        tree("model m { }\n");
        assert_int_equal(spec.diagnostics.errors, 0);
    }
}

static void diagnostics_limit(void **state) {
    (void)state;
    Text text = text_new(arena);
    for (int i = 0; i < 30; i++) text_printf(&text, "? %d\n", i);
    tree(text.data);
    assert_int_equal(spec.diagnostics.errors, 30);
    int shown = 0;
    for (const char *at = spec.diagnostics.log.data; (at = strstr(at, ": error: ")); at++) shown++;
    assert_int_equal(shown, MAX_DIAGNOSTICS);
    assert_non_null(strstr(spec.diagnostics.log.data, "too many errors"));
}

static void carets(void **state) {
    (void)state;
    refused("model m {\n\td_model 4\n\tvocab\t0\n}\n",
        "spec:3:8: error: `vocab` must be at least 1, found 0\n    \tvocab\t0\n    \t     \t^\n");
    refused("model m { d_model 10/0/5 }",
        "spec:1:22: error: division by zero\n    model m { d_model 10/0/5 }\n                         ^\n");
    refused("model m { d_model 4*(3-5) }", "    model m { d_model 4*(3-5) }\n                      ^~~~~~~\n");
    Text text = text_new(arena);
    for (int i = 0; i < 400; i++) text_printf(&text, " ");
    text_printf(&text, "model m {");
    for (int i = 0; i < 400; i++) text_printf(&text, " ");
    text_printf(&text, "d_modell }");
    tree(text.data);
    refused(text.data, "spec:1:810: error: `d_modell`"); /* a long line is shown around the place */
    assert_true(spec.diagnostics.log.size < 600);
    assert_non_null(strstr(spec.diagnostics.log.data, " d_modell }\n"));
}

/* ------------------------------------------------------------------ formatter */

static void formats(const char *text, const char *expected) {
    Ast *ast = tree(text);
    if (spec.diagnostics.errors) fail_msg("%s\n%s", text, spec.diagnostics.log.data);
    char *once = ast_format(arena, ast);
    assert_string_equal(once, expected);
    assert_string_equal(ast_format(arena, tree(once)), expected);
}

static void formatting(void **state) {
    (void)state;
    formats("model   m{d_model  4}# end", "model m { d_model 4 }  # end\n");
    formats("let a=1,let b=2 # both", "let a = 1\nlet b = 2  # both\n");
    formats("model m{\n#a\n\n\n#b\nd_model 4\n#c\n}", "model m {\n    #a\n\n    #b\n    d_model 4\n    #c\n}\n");
    formats("model m{# a\n}#b", "model m {  # a\n}  #b\n");
    formats("model m{}", "model m {}\n");
    formats("a { b { c 1 } }, d 2 # e", "a { b { c 1 } }\nd 2  # e\n");
    formats("a { b 1\n c 2 } # d", "a {\n    b 1\n    c 2\n}  # d\n");
    formats("a { b 1 # c\n }, d { e 2\n# f\n} # g", "a {\n    b 1  # c\n}\nd {\n    e 2\n    # f\n}  # g\n");
    formats("\"x\"  from \"#y\" rows 1..n", "\"x\" from \"#y\" rows 1..n\n");
    formats("# only\nlet a = 1*(\n# inside\n2)", "# only\nlet a = 1*2\n# inside\n");
}

static void expression_formatting(void **state) {
    (void)state;
    static const char *const same[] = {
        "1+2*3", "1-(2-3)", "1-2-3", "1-(2+3)", "2*(3+4)", "8/(4/2)", "8/4/2", "8/(4*2)", "8*4/2", "8*(4/2)", "2+(-3)",
            "2*(-3)",
        "sqrt(-3)", "sqrt(2)*sqrt(1+2)", "b", "2*(-(3+4))", "1e-6", "0.5e+10", ".5", "sqrt((1+2)*3)", "1+(2+3)*4",
            "sqrt((-1)+2)",
    };
    for (size_t i = 0; i < sizeof same / sizeof same[0]; i++)
        formats(arena_printf(arena, "let x = %s", same[i]), arena_printf(arena, "let x = %s\n", same[i]));
    formats("let x = 1-(2)", "let x = 1-2\n");
    formats("let x = 1+(2*3)", "let x = 1+2*3\n");
}

/* ------------------------------------------------------------------ expressions */

static double value_of(const char *expression) {
    return model(arena_printf(arena, "let n = 10\nlet r = 2.5\nmodel m { d_model 12, vocab 7, embedding scale %s\n"
                                     "encoder { seq = 2, layers 1 { ffn { d_ff 3 } } } }",
                                         expression))->encoder->embedding_scale;
}

static int64_t integer_of(const char *expression) {
    return model(arena_printf(arena,
        "let n = 10\nlet r = 2.5\nmodel m { vocab 7, d_model %s\nencoder { seq = 2, layers 1 { ffn { d_ff 3 } } } }",
        expression))->d_model;
}

static void not_integer(const char *expression) {
    refused(arena_printf(arena,
        "let n = 10\nlet r = 2.5\nmodel m { vocab 7, d_model %s, encoder { seq = 2, layers 1 { ffn { d_ff 3 } } } }",
        expression),
            "`d_model` wants an integer, ");
}

static void arithmetic(void **state) {
    (void)state;
    static const struct { const char *text; int64_t value; } integers[] = {
        {"7", 7}, {"1+2*3", 7}, {"20-8-4", 8}, {"20-(8-4)", 16}, {"100/10/5", 2}, {"100/(10/5)", 50}, {"2*(1+2)*3",
            18}, {"n*n-n/5", 98},
        {"3*(-2)+n", 4}, {"3-(-2)", 5}, {"1+(2+3)*4", 21}, {"vocab*2", 14}, {"007", 7},
            {"4611686018427387904/4611686018427387904", 1},
        {"9223372036854775807-9223372036854775800", 7}, {"2*(-(-3))", 6},
    };
    for (size_t i = 0; i < sizeof integers / sizeof integers[0]; i++)
        assert_true(integer_of(integers[i].text) == integers[i].value);
    static const char *const reals[] = {"4.0", "7/2", "n/3", "r*2", "r+r", "sqrt(16)", "4e0", "8.0/2", "n-0.0"};
    for (size_t i = 0; i < sizeof reals / sizeof reals[0]; i++) not_integer(reals[i]);
    static const struct { const char *text; double value; } all[] = {
        {"7/2", 3.5}, {"1/3", 1.0 / 3}, {"r*r", 6.25}, {"sqrt(2)", 1.4142135623730951}, {"sqrt(n*n)", 10}, {"n/4*2",
            5}, {"2*n/4", 5},
        {"0-1.5", -1.5}, {"sqrt(-1+2)", 1}, {"1e-3*1e3", 1}, {"sqrt(sqrt(16))/r", 0.8}, {".5", 0.5},
            {"9007199254740993", 9007199254740992.0},
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (fabs(value_of(all[i].text) - all[i].value) > 1e-15 * fabs(all[i].value)) fail_msg("%s is %.17g",
            all[i].text, value_of(all[i].text));
}

static void scopes(void **state) {
    (void)state;
    const Model *m = model("let a = 2\nmodel m { let b = a*3, d_model b*2, vocab 5, heads 3\n"
                           "encoder { seq <= a, layers 2 {\n"
                           "layer { let c = heads+1, attention self { let d = c, heads d, head_dim 3 } }\n"
                           "layer { let c = 7, attention self { head_dim c } } } } }");
    assert_int_equal(m->d_model, 12);
    assert_int_equal(m->encoder->seq.n, 2);
    assert_int_equal(m->encoder->layers[0].sublayers[0].attention.heads, 4);
    assert_int_equal(m->encoder->layers[1].sublayers[0].attention.heads, 3);
    assert_int_equal(m->encoder->layers[1].sublayers[0].attention.head_dim, 7);
    refused("model m { d_model a, let a = 4 }", "`a` is neither a `let` nor a numeric setting");
    refused("model m { d_model 4, encoder { seq = a }, let a = 4 }", "`a` gets its value only after this use");
    refused("model m { let a = b, d_model 4 }", "`b` is neither a `let` nor a numeric setting");
}

/* ------------------------------------------------------------------ defaults */

static void stack_defaults(void **state) {
    (void)state;
    const Model *m = small("", "encoder", "", "");
    const Stack *s = m->encoder;
    assert_true(m->encoder && !m->decoder && !m->alone);
    assert_true(s->input == INPUT_TOKENS && s->vocab == 7 && s->seq.n == 5 && !s->seq.exact);
    assert_true(s->embedding_scale == 1 && s->segments == 0 && s->embedding_width == 12 && !s->embedding_projected);
    assert_int_equal(s->embedding_norm.kind, NORM_NONE);
    assert_int_equal(s->position.kind, POSITION_NONE);
    assert_true(s->n_layers == 1 && s->pattern == 1 && s->hidden_width == 12 && s->layers[0].weights_of == 0);
    assert_true(!s->layers[0].parallel && !s->layers[0].shared_norm);
    assert_true(!m->embedding_tied && !m->unroll_full && m->precision.weights.dtype == DTYPE_F32);
    assert_true(m->start == -1 && m->pad == -1 && m->n_end == 0);
    assert_true(!m->head.logits && m->head.pool == POOL_NONE && !m->head.pooler && !m->head.classifier);
    assert_true(m->n_source_names == 0 && m->n_prefixes == 0 && m->n_ignored == 0);
}

static void attention_defaults(void **state) {
    (void)state;
    const Attention *a = attention(small("", "encoder", "", ""));
    assert_true(!a->cross && a->heads == 2 && a->kv_heads == 2 && a->head_dim == 6 && a->value_dim == 6);
    assert_true(a->query_width == 12 && a->key_width == 12 && a->value_width == 12 && a->output_width == 12);
    assert_true(a->projected && a->has_output && a->bias_q && a->bias_k && a->bias_v && a->bias_o);
    assert_true(a->score == SCORE_scaled_dot && a->scale == 1 / sqrt(6.0) && a->softcap == 0);
    assert_true(a->qk_norm.kind == NORM_NONE && !a->sink_learned && a->sink == 0 && a->window == 0);
    assert_true(!a->mask_causal && !a->mask_padding && !a->mask_prefix && !a->mask_given && !a->exported);
    assert_int_equal(a->position.kind, POSITION_NONE);
    assert_true(attention(small("", "decoder", "", ""))->mask_causal); /* a decoder's self attention is causal */
    assert_true(attention(small("", "encoder", ", score dot", ""))->scale == 1);
    assert_true(attention(small("", "encoder", ", head_dim 4", ""))->scale == 0.5);
    assert_int_equal(attention(small("", "encoder", ", head_dim 4", ""))->value_dim, 4);
    assert_int_equal(attention(small("", "encoder", ", kv_heads 1", ""))->kv_heads, 1);
    a = attention(small("", "encoder", ", bias q v", ""));
    assert_true(a->bias_q && !a->bias_k && a->bias_v && !a->bias_o);
    a = attention(small("", "encoder", ", bias none", ""));
    assert_true(!a->bias_q && !a->bias_k && !a->bias_v && !a->bias_o);
    a = attention(small("norm eps 1e-3", "encoder", ", qk_norm rmsnorm", ""));
    assert_true(a->qk_norm.kind == NORM_rmsnorm && a->qk_norm.eps == 1e-3 && !a->qk_norm_all_heads &&
        !a->qk_norm_weight_per_head && !a->qk_norm.plus_one);
}

static void position_defaults(void **state) {
    (void)state;
    const Position *p = &attention(small("", "encoder", ", position rope", ""))->position;
    assert_true(p->kind == POSITION_ROPE && p->rope_width == 6 && !p->rope_interleaved && p->theta == 10000 &&
        p->scaling == ROPE_PLAIN);
    p = &attention(small("", "encoder", ", position rope llama3 factor 8 original 16", ""))->position;
    assert_true(p->low == 1 && p->high == 4 && p->factor == 8 && p->original == 16);
    p = &attention(small("", "encoder", ", position rope yarn factor 2 original 16", ""))->position;
    assert_true(p->beta_fast == 32 && p->beta_slow == 1 && !p->untruncated && p->attention_factor == 0);
    p = &attention(small("", "encoder", ", position alibi", ""))->position;
    assert_true(p->kind == POSITION_ALIBI && p->alibi_max == 8 && !p->alibi_scaled);
    p = &attention(small("", "encoder", ", position relative", ""))->position;
    assert_true(p->buckets == 32 && p->distance == 128 && !p->per_layer && p->bidirectional);
    assert_false(attention(small("", "decoder", ", position relative", ""))->position.bidirectional);
    const Stack *s = small("position sinusoidal", "encoder", "", "")->encoder;
    assert_true(s->position.kind == POSITION_SINUSOIDAL && s->position.sinusoid == SINUSOID_INTERLEAVED &&
        s->position.offset == 0);
    s = small("position relative", "encoder", "", "")->encoder;
    assert_true(s->position.kind == POSITION_NONE && s->relative.kind == POSITION_RELATIVE && s->relative_heads == 2);
}

static void norm_defaults(void **state) {
    (void)state;
    static const struct { const char *setting; bool in, out, sum, final; } cases[] = {
        {"", true, false, false, true}, {"norm pre", true, false, false, true}, {"norm post", false, true, true, false},
        {"norm after", false, true, false, true}, {"norm both", true, true, false, true}, {"norm none", false, false,
            false, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const Model *m = small(cases[i].setting, "encoder", "", "");
        for (int s = 0; s < 2; s++) {
            const Sublayer *sub = sublayer(m, s);
            assert_int_equal(sub->norm_in.kind, cases[i].in ? NORM_layernorm : NORM_NONE);
            assert_int_equal(sub->norm_out.kind, cases[i].out ? NORM_layernorm : NORM_NONE);
            assert_int_equal(sub->norm_out_on_sum, cases[i].sum);
            assert_true(sub->residual && sub->residual_scale == 1);
        }
        assert_int_equal(m->encoder->final_norm.kind, cases[i].final ? NORM_layernorm : NORM_NONE);
    }
    Norm norm = sublayer(small("", "encoder", "", ""), 0)->norm_in;
    assert_true(norm.eps == 1e-5 && norm.bias && !norm.plus_one);
    norm = sublayer(small("norm layernorm eps 1e-12 post", "encoder", ", norm rmsnorm", ""), 0)->norm_out;
    assert_true(norm.kind == NORM_rmsnorm && norm.eps == 1e-5 && !norm.bias); /* another kind does not keep the eps */
    norm = sublayer(small("norm rmsnorm eps 1e-12 plus_one", "encoder", ", norm post", ""), 0)->norm_out;
    assert_true(norm.kind == NORM_rmsnorm && norm.eps == 1e-12 && norm.plus_one); /* another place does */
    assert_int_equal(small("final_norm no", "encoder", "", "")->encoder->final_norm.kind, NORM_NONE);
    assert_int_equal(small("norm post, final_norm yes", "encoder", "", "")->encoder->final_norm.kind, NORM_layernorm);
}

static void ffn_defaults(void **state) {
    (void)state;
    const Ffn *f = &sublayer(small("", "encoder", "", ""), 1)->ffn;
    assert_true(f->d_ff == 8 && f->activation == ACTIVATION_relu && !f->gated && f->bias_up && f->bias_down &&
        !f->bias_gate);
    f = &sublayer(small("", "encoder", "", ", activation silu gated"), 1)->ffn;
    assert_true(f->activation == ACTIVATION_silu && f->gated && f->bias_gate);
    f = &sublayer(small("", "encoder", "", ", bias down"), 1)->ffn;
    assert_true(!f->bias_up && f->bias_down);
    assert_string_equal(sublayer(small("", "encoder", "", ""), 1)->name, "ffn");
}

static void head_defaults(void **state) {
    (void)state;
    Head h = small("head logits", "encoder", "", "")->head;
    assert_true(h.logits && !h.tied && !h.bias && h.softcap == 0 && h.scale == 1 && h.pool == POOL_NONE);
    assert_true(small("head logits, embedding tied", "encoder", "", "")->head.tied);
    h = small("head pool", "encoder", "", "")->head;
    assert_true(!h.logits && h.pool == POOL_MEAN && !h.l2);
}

static void alone_defaults(void **state) {
    (void)state;
    const Model *m = model("model m { d_model 8, attention self { heads 2, queries <= 3 } }");
    assert_true(m->alone && m->queries.n == 3 && m->keys.n == 3 && !m->keys.exact && !m->alone->residual);
    assert_true(m->alone->norm_in.kind == NORM_NONE && m->alone->norm_out.kind == NORM_NONE);
    m = model("model m { attention cross { score additive, d_query 4, d_key 6, d_score 5, queries = 1, keys <= 9 } }");
    const Attention *a = &m->alone->attention;
    assert_true(!a->projected && !a->has_output && a->heads == 1 && a->scale == 1 && a->value_dim == 6 &&
        a->output_width == 6 && m->d_model == 0);
}

/* Bounds, unrolling and exports do not change which weights fit; numbers do. */
static void hashes(void **state) {
    (void)state;
    uint64_t hash = small("", "encoder", "", "")->hash;
    assert_true(small("unroll auto, export attention", "encoder", "", "")->hash == hash);
    assert_true(small("norm layernorm pre eps 1e-5", "encoder", ", kv_heads 2, head_dim 6",
        ", activation relu")->hash == hash);
    assert_true(small("norm eps 1e-6", "encoder", "", "")->hash != hash);
    assert_true(small("", "decoder", "", "")->hash != hash);
}

/* The weights block: every word of a line, ranges of both kinds. */
static void source_names(void **state) {
    (void)state;
    const Model *m = small("weights { prefix \"a.\" \"b.\"\nprefix \"c.\", ignore \"x.*\"\n"
                           "\"encoder.layers.{layer}.attention.query.*\" from \"q.{layer}.*\" "
                           "rows 8..d_model 3 transpose\n"
                           "\"encoder.layers.0.attention.key.weight\" from \"s\" interleaved 4 parts 3 take 1 optional,"
                           "\"encoder.embedding.tokens.weight\" from \"u\" interleaved 1 parts 4 take 1..3 }",
                           "encoder", "", "");
    assert_true(m->n_prefixes == 3 && m->n_ignored == 1 && m->n_source_names == 3);
    assert_string_equal(m->prefixes[2], "c.");
    const SourceName *s = m->source_names;
    assert_true(s[0].n_rows == 2 && s[0].rows[0].begin == 8 && s[0].rows[0].end == 12 && s[0].rows[1].begin == 3 &&
        s[0].rows[1].end == 4 && s[0].transpose && !s[0].optional && s[0].groups == 0);
    assert_true(s[1].groups == 4 && s[1].parts == 3 && s[1].take == 1 && s[1].take_end == 2 && s[1].optional &&
        !s[1].rows);
    assert_true(s[2].take == 1 && s[2].take_end == 3);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(places), TEST(items), TEST(reentrant), TEST(diagnostics_limit),
        TEST(carets), TEST(formatting), TEST(expression_formatting), TEST(arithmetic),
        TEST(scopes), TEST(stack_defaults), TEST(attention_defaults), TEST(position_defaults),
        TEST(norm_defaults), TEST(ffn_defaults), TEST(head_defaults), TEST(alone_defaults),
        TEST(hashes), TEST(source_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
