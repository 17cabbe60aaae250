/* pieces_classes.c: writes the tokenizer.json of SentencePiece files that transformers 5 reads by `tokenizers`, with
 * the steps that its classes have (transformers, models/.../tokenization_*.py). They give the ids of the class;
 * for few texts they differ from sentencepiece's ids. */
#include "pieces.h"

#include <string.h>

#define SPACE_SIGN "\\u2581"
#define SPACES_APART "{\"type\":\"WhitespaceSplit\"}"
#define ONE_SPACE "{\"type\":\"Replace\",\"pattern\":{\"Regex\":\" {2,}\"},\"content\":\" \"}"

static void put_metaspace(Pieces *p, const char *scheme, bool split) {
    text_printf(&p->out, "{\"type\":\"Metaspace\",\"replacement\":\"" SPACE_SIGN "\",\"prepend_scheme\":\"%s\","
                         "\"split\":%s}", scheme, split ? "true" : "false");
}

/* Words with a sign for the space before them; with `apart`, they are cut at any white space. */
static void put_words(Pieces *p, bool prefix, bool apart) {
    const char *scheme = prefix ? "always" : "never";
    text_printf(&p->out, ",\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[%s",
                apart ? SPACES_APART "," : "");
    put_metaspace(p, scheme, true);
    text_printf(&p->out, "]},\"decoder\":");
    put_metaspace(p, scheme, true);
}

/* Steps before and after the table of replacements, each of which may be empty. */
static void put_normalizers(Pieces *p, const char *before, const char *after) {
    const bool table = p->spm.charsmap_size > 0;
    text_printf(&p->out, ",\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[%s", before);
    if (table) {
        text_printf(&p->out, "%s{\"type\":\"Precompiled\",", *before ? "," : "");
        put_charsmap(p);
        text_printf(&p->out, "}");
    }
    text_printf(&p->out, "%s%s]}", *after && (table || *before) ? "," : "", after);
}

/* ---------------------------------------------------------------- names */

static void add_special_name(Pieces *p, const char *text) { add_name(p, text, strlen(text), 0, p->names.count); }

static void add_pieces(Pieces *p, int64_t from) {
    for (int64_t i = from; i < p->spm.count; i++)
        add_name(p, p->spm.pieces[i].text, p->spm.pieces[i].size, p->spm.pieces[i].score, p->names.count);
}

/* The words of `codes`, which spaces separate, as names and as tokens. */
static void add_codes(Pieces *p, const char *codes) {
    for (size_t size; *codes; codes += size + (codes[size] == ' ')) {
        size = strcspn(codes, " ");
        const char *code = arena_copy(p->arena, codes, size);
        add_special_name(p, code);
        add_token(p, (Added){.text = code, .special = true});
    }
}

/* Tokens that a file of SentencePiece has for control, or that its user chose. */
static void add_own_tokens(Pieces *p) {
    for (int64_t i = 0; i < p->spm.count; i++) {
        const Piece *piece = &p->spm.pieces[i];
        if (piece->type == PIECE_CONTROL || piece->type == PIECE_USERS)
            add_token(p, (Added){.text = arena_copy(p->arena, piece->text, piece->size),
                                 .special = piece->type == PIECE_CONTROL});
    }
}

static const char *token_text(const Pieces *p, const char *key, const char *otherwise) {
    return named_token(p, key, otherwise).text;
}

/* The first four tokens of fairseq, in place of three pieces of the file. */
static void add_fairseq_names(Pieces *p) {
    enum { FIRST = 3 };
    for (int64_t i = 0; i < FIRST; i++)
        if (i >= p->spm.count || (p->spm.pieces[i].type != PIECE_UNKNOWN && p->spm.pieces[i].type != PIECE_CONTROL))
            fail("%s: its first pieces are not <unk>, <s> and </s>, as of models of fairseq", p->spm.path);
    add_special_name(p, token_text(p, "bos_token", "<s>"));
    add_special_name(p, token_text(p, "pad_token", "<pad>"));
    add_special_name(p, token_text(p, "eos_token", "</s>"));
    add_special_name(p, token_text(p, "unk_token", "<unk>"));
    add_pieces(p, FIRST);
}

static void need_unigram(const Pieces *p, const char *class) {
    if (p->spm.pairs) fail("%s: it has pairs, and the tokenizer's class %s reads a unigram model", p->spm.path, class);
}

#define FAIRSEQ "bos_token <s> eos_token </s> unk_token <unk> sep_token </s> pad_token <pad> cls_token <s> "

/* ---------------------------------------------------------------- classes */

static void write_t5(Pieces *p) {
    enum { EXTRA = 100, MOST_EXTRA = 1 << 16 };
    const cJSON *value = json_member(p->config, "extra_ids");
    int64_t extra = EXTRA;
    if (value && (!json_whole(value, &extra) || extra > MOST_EXTRA))
        refuse_setting(p, "extra_ids", "is no number of tokens");
    for (int64_t i = 0; i < p->spm.count && extra; i++) {
        const size_t size = p->spm.pieces[i].size, own = strlen("<extra_id_");
        if (size <= own || memcmp(p->spm.pieces[i].text, "<extra_id_", own) != 0) continue;
        const char *text = arena_copy(p->arena, p->spm.pieces[i].text, size);
        fail("%s: it has a piece `%.*s`, and `extra_ids` says that such tokens follow the pieces", p->spm.path,
             CUT(60, text));
    }
    add_pieces(p, 0);
    const int64_t first = p->names.count;
    for (int64_t i = extra - 1; i >= 0; i--) {
        const char *name = arena_printf(p->arena, "<extra_id_%lld>", (long long)i);
        add_special_name(p, name);
    }
    add_tokens(p, "eos_token </s> unk_token <unk> pad_token <pad> ");
    add_own_tokens(p);
    for (int64_t i = first; i < p->names.count && !has_extra_list(p); i++)
        add_token(p, (Added){.text = p->names.list[i].text, .special = true});
    put_normalizers(p, "", "");
    put_words(p, true, true);
    put_unigram(p, 2);
    put_templates(p, "$A </s>", "$A </s> $B </s>");
}

static void write_albert(Pieces *p) {
    add_pieces(p, 0);
    add_tokens(p, "bos_token [CLS] eos_token [SEP] unk_token <unk> sep_token [SEP] pad_token <pad> cls_token [CLS] "
                  "mask_token [MASK] ");
    add_own_tokens(p);
    const char *quotes = "{\"type\":\"Replace\",\"pattern\":{\"String\":\"``\"},\"content\":\"\\\"\"},"
                         "{\"type\":\"Replace\",\"pattern\":{\"String\":\"''\"},\"content\":\"\\\"\"}";
    const bool keep = setting(p, "keep_accents", false);
    const char *accents = keep ? "" : ",{\"type\":\"NFKD\"},{\"type\":\"StripAccents\"}";
    const char *lower = setting(p, "do_lower_case", true) ? ",{\"type\":\"Lowercase\"}" : "";
    put_normalizers(p, arena_printf(p->arena, "%s%s%s", quotes, accents, lower), "");
    put_words(p, setting(p, "add_prefix_space", true), true);
    put_unigram(p, 1);
    put_templates(p, "[CLS] $A [SEP]", "[CLS] $A [SEP] $B:1 [SEP]:1");
}

static void write_xlm_roberta(Pieces *p) {
    const char *bos = token_text(p, "bos_token", "<s>"), *eos = token_text(p, "eos_token", "</s>");
    add_fairseq_names(p);
    add_special_name(p, token_text(p, "mask_token", "<mask>"));
    add_tokens(p, FAIRSEQ "mask_token <mask> ");
    add_own_tokens(p);
    put_normalizers(p, "", "");
    put_words(p, setting(p, "add_prefix_space", true), true);
    put_unigram(p, 3);
    put_templates(p, arena_printf(p->arena, "%s $A %s", bos, eos),
                  arena_printf(p->arena, "%s $A %s %s $B %s", bos, eos, eos, eos));
}

/* A code that the tokenizer has, such as src_lang of its config. */
static const char *source_language(const Pieces *p, const char *otherwise) {
    const char *code = text_setting(p, "src_lang", otherwise);
    int64_t at = 0;
    while (at < p->n_added && strcmp(p->added[at].text, code) != 0) at++;
    if (at == p->n_added)
        refuse_setting(p, "src_lang",
                       arena_printf(p->arena, "is \"%.*s\", a language that the tokenizer lacks", CUT(60, code)));
    return code;
}

/* <mask> takes the spaces before it. */
static void add_mask(Pieces *p, bool normalized) {
    Added mask = named_token(p, "mask_token", NULL);
    if (!mask.text) mask = (Added){.text = "<mask>", .special = true, .left = true, .normalized = normalized};
    else if (!json_member(json_member(p->config, "mask_token"), "content"))
        mask.left = true, mask.normalized = normalized;
    add_special_name(p, mask.text);
    add_token(p, mask);
}

/* The names of a class of fairseq with the codes of its languages, and its tokens. */
static void add_language_names(Pieces *p, const char *of, bool normalized_mask) {
    add_fairseq_names(p);
    add_codes(p, language_codes(of));
    add_mask(p, normalized_mask);
    add_tokens(p, FAIRSEQ);
    add_own_tokens(p);
}

static void write_mbart(Pieces *p) {
    add_language_names(p, "mbart", false);
    put_words(p, true, true); /* the class has no normalizer */
    put_unigram(p, 3);
    const char *around = arena_printf(p->arena, "%s %s", token_text(p, "eos_token", "</s>"),
                                      source_language(p, "en_XX"));
    put_templates(p, arena_printf(p->arena, "$A %s", around), arena_printf(p->arena, "$A $B %s", around));
}

static void write_mbart50(Pieces *p) {
    add_language_names(p, "mbart50", false);
    put_normalizers(p, "", ONE_SPACE);
    put_words(p, true, false);
    put_unigram(p, 3);
    const char *eos = token_text(p, "eos_token", "</s>"), *code = source_language(p, "en_XX");
    put_templates(p, arena_printf(p->arena, "%s $A %s", code, eos), arena_printf(p->arena, "%s $A $B %s", code, eos));
}

static void write_nllb(Pieces *p) {
    if (!p->spm.pairs) fail("%s: it is a unigram model, and the tokenizer's class Nllb reads pairs", p->spm.path);
    add_language_names(p, "nllb", true);
    if (p->spm.charsmap_size) put_normalizers(p, "", ONE_SPACE);
    put_words(p, true, false);
    put_pairs(p, token_text(p, "unk_token", "<unk>"), false);
    const char *eos = token_text(p, "eos_token", "</s>"), *code = source_language(p, "eng_Latn");
    if (setting(p, "legacy_behaviour", false))
        put_templates(p, arena_printf(p->arena, "$A %s %s", eos, code),
                      arena_printf(p->arena, "$A $B %s %s", eos, code));
    else
        put_templates(p, arena_printf(p->arena, "%s $A %s", code, eos),
                      arena_printf(p->arena, "%s $A $B %s", code, eos));
}

static void write_llama(Pieces *p) {
    if (!p->spm.pairs) fail("%s: it is a unigram model, and the tokenizer's class Llama reads pairs", p->spm.path);
    const bool prefix = setting(p, "add_prefix_space", true);
    add_pieces(p, 0);
    add_tokens(p, "bos_token <s> eos_token </s> unk_token <unk> ");
    add_own_tokens(p);
    text_printf(&p->out, ",\"pre_tokenizer\":");
    put_metaspace(p, !prefix ? "never" : setting(p, "legacy", false) ? "always" : "first", false);
    text_printf(&p->out, ",\"decoder\":{\"type\":\"Sequence\",\"decoders\":[{\"type\":\"Replace\",\"pattern\":{"
                         "\"String\":\"" SPACE_SIGN "\"},\"content\":\" \"},{\"type\":\"ByteFallback\"},"
                         "{\"type\":\"Fuse\"}%s]}",
                prefix ? ",{\"type\":\"Strip\",\"content\":\" \",\"start\":1,\"stop\":0}" : "");
    put_pairs(p, NULL, true);
    const char *bos = setting(p, "add_bos_token", false) ? token_text(p, "bos_token", "<s>") : NULL;
    const char *eos = setting(p, "add_eos_token", false) ? token_text(p, "eos_token", "</s>") : NULL;
    const char *before = bos ? arena_printf(p->arena, "%s ", bos) : "";
    const char *after = eos ? arena_printf(p->arena, " %s", eos) : "";
    const char *one = arena_printf(p->arena, "%s$A%s", before, after);
    put_templates(p, one, arena_printf(p->arena, "%s %s%s$B:1%s%s", one, bos ? bos : "", bos ? ":1 " : "", after,
                                       eos ? ":1" : ""));
}

bool write_class(Pieces *p, const char *name) {
    static const struct {
        const char *name;
        void (*write)(Pieces *);
        bool unigram;
    } classes[] = {{"T5", write_t5, true}, {"Albert", write_albert, true}, {"XLMRoberta", write_xlm_roberta, true},
                   {"MBart", write_mbart, true}, {"MBart50", write_mbart50, true}, {"Nllb", write_nllb, false},
                   {"Llama", write_llama, false}};
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++) {
        if (strcmp(classes[i].name, name) != 0) continue;
        if (classes[i].unigram) need_unigram(p, name);
        classes[i].write(p);
        return true;
    }
    return false;
}
