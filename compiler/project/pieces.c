/* pieces.c: writes the tokenizer.json of a SentencePiece file, for the class of transformers that the files of its
 * folder name. Without a class it does what the library sentencepiece does. The classes of Marian and M2M-100 call that
 * library, and have ids of their own in vocab.json; pieces_classes.c has the classes that call `tokenizers`. */
#include "pieces.h"

#include <stdlib.h>
#include <string.h>

/* What the library gives back: spaces in place of their signs, and none at the beginning. */
static void put_decoder(Pieces *p, bool end) {
    const SpmModel *spm = &p->spm;
    const int start = end || spm->remove_extra_whitespaces ? 1 << 30 : spm->add_dummy_prefix;
    text_printf(&p->out, ",\"decoder\":{\"type\":\"Sequence\",\"decoders\":[{\"type\":\"Replace\",\"pattern\":{"
                         "\"String\":\"\\u2581\"},\"content\":\" \"}%s,{\"type\":\"Fuse\"},{\"type\":\"Strip\","
                         "\"content\":\" \",\"start\":%d,\"stop\":%d}]}",
                spm->byte_fallback ? ",{\"type\":\"ByteFallback\",\"each\":true}" : "", start, end ? 1 << 30 : 0);
}

static void add_places(Pieces *p) {
    for (int64_t i = 0; i < p->spm.count; i++)
        add_name(p, p->spm.pieces[i].text, p->spm.pieces[i].size, 0, i);
}

/* The ids are the places of the pieces. Control pieces are never found in a text. */
static void write_plain(Pieces *p) {
    const Piece *unknown = &p->spm.pieces[p->spm.unknown];
    add_places(p);
    for (int64_t i = 0; i < p->spm.count; i++) {
        const Piece *piece = &p->spm.pieces[i];
        if (piece->type == PIECE_CONTROL || piece->type == PIECE_UNKNOWN)
            add_token(p, (Added){.text = arena_copy(p->arena, piece->text, piece->size), .special = true,
                                 .unseen = true});
    }
    put_decoder(p, false);
    put_sentencepiece(p, arena_copy(p->arena, unknown->text, unknown->size), false);
}

/* ---------------------------------------------------------------- ids of vocab.json */

static int by_place(const void *left, const void *right) {
    const PieceName *a = left, *b = right;
    const size_t common = a->size < b->size ? a->size : b->size;
    const int order = memcmp(a->text, b->text, common);
    return order ? order : (a->size > b->size) - (a->size < b->size);
}

/* Fails where few of the pieces have ids: a piece without one becomes the unknown token, as in transformers. */
static void check_covered(const Pieces *p, const char *path) {
    PieceName *sorted = arena_array(p->arena, (size_t)p->names.count + 1, sizeof *sorted);
    int64_t lacking = 0, normal = 0;
    if (p->names.count) memcpy(sorted, p->names.list, (size_t)p->names.count * sizeof *sorted);
    qsort(sorted, (size_t)p->names.count, sizeof *sorted, by_place);
    for (int64_t i = 0; i < p->spm.count; i++) {
        const PieceName key = {p->spm.pieces[i].text, p->spm.pieces[i].size, 0, 0};
        if (p->spm.pieces[i].type != PIECE_NORMAL) continue;
        normal++;
        lacking += !bsearch(&key, sorted, (size_t)p->names.count, sizeof *sorted, by_place);
    }
    if (lacking > normal / 2)
        fail("%s: it lacks %lld of the %lld pieces of %s, and belongs to another tokenizer", path, (long long)lacking,
             (long long)normal, path_name(p->spm.path));
}

static void read_ids(Pieces *p) {
    const char *path = in_folder(p, "vocab.json");
    if (!file_exists(path)) fail("%s: there is no such file, which has the ids of the pieces", path);
    const cJSON *root = json_file(p->arena, path, MOST_BYTES)->root, *item;
    if (!cJSON_IsObject(root)) fail("%s: it is no object of names and ids", path);
    int64_t count = (int64_t)json_count(root), id;
    p->taken = arena_array(p->arena, MOST_ID, 1);
    if (count > MOST_ID) fail("%s: it has more than %d names", path, MOST_ID);
    cJSON_ArrayForEach(item, root) {
        if (!json_whole(item, &id) || id >= MOST_ID)
            fail("%s: the id of `%.*s` is no whole number below %d", path, CUT(60, item->string), MOST_ID);
        if (p->taken[id]++) fail("%s: the id %lld stands there twice", path, (long long)id);
        add_name(p, item->string, strlen(item->string), 0, id);
    }
    check_covered(p, path);
    p->in_vocab = true;
}

static void write_marian(Pieces *p) {
    if (setting(p, "separate_vocabs", false))
        refuse_setting(p, "separate_vocabs", "is true: another vocabulary for what is written is not done here");
    if (!file_exists(in_folder(p, "target.spm")))
        fail("%s: there is no such file; the pieces of what is written are checked with it",
             in_folder(p, "target.spm"));
    spm_read(p->arena, in_folder(p, "target.spm")); /* its pieces have their texts in vocab.json */
    read_ids(p);
    add_tokens(p, "eos_token </s> unk_token <unk> pad_token <pad> ");
    text_printf(&p->out, ",\"leading_codes\":true");
    put_decoder(p, true);
    put_sentencepiece(p, named_token(p, "unk_token", "<unk>").text, true);
    const char *eos = named_token(p, "eos_token", "</s>").text;
    put_templates(p, arena_printf(p->arena, "$A %s", eos), arena_printf(p->arena, "$A $B %s", eos));
}

static void write_m2m_100(Pieces *p) {
    const char *of = text_setting(p, "language_codes", "m2m100");
    const char *codes = strcmp(of, "m2m100") == 0 || strcmp(of, "wmt21") == 0 ? language_codes(of) : NULL;
    if (!codes) refuse_setting(p, "language_codes", "is neither \"m2m100\" nor \"wmt21\"");
    read_ids(p);
    int64_t next = p->names.count; /* as transformers counts, whatever the ids are */
    for (size_t size; *codes; codes += size + (codes[size] == ' ')) {
        size = strcspn(codes, " ");
        const char *token = arena_printf(p->arena, "__%.*s__", (int)size, codes);
        if (token_id(p, token) >= 0) fail("%s: it has the token `%s` already", in_folder(p, "vocab.json"), token);
        add_new_name(p, "vocab.json", token, next++);
        add_token(p, (Added){.text = token, .special = true});
    }
    add_tokens(p, "bos_token <s> eos_token </s> unk_token <unk> sep_token </s> pad_token <pad> ");
    put_decoder(p, true);
    put_sentencepiece(p, named_token(p, "unk_token", "<unk>").text, true);
    const char *source = text_setting(p, "src_lang", "en"), *eos = named_token(p, "eos_token", "</s>").text;
    const char *token = arena_printf(p->arena, "__%s__", source);
    if (token_id(p, token) < 0)
        refuse_setting(p, "src_lang",
                       arena_printf(p->arena, "is \"%.*s\", a language that the tokenizer lacks", CUT(60, source)));
    put_templates(p, arena_printf(p->arena, "%s $A %s", token, eos), arena_printf(p->arena, "%s $A $B %s", token, eos));
}

/* ---------------------------------------------------------------- the class */

/* The class that AutoTokenizer chooses, without its endings; NULL where no file names one. */
static const char *class_of(const Pieces *p) {
    static const char *const kinds[][2] = {{"marian", "Marian"}, {"m2m_100", "M2M100"}, {"mbart", "MBart"},
                                           {"nllb-moe", "Nllb"}, {"t5", "T5"}, {"mt5", "T5"}, {"albert", "Albert"},
                                           {"xlm-roberta", "XLMRoberta"}, {"llama", "Llama"}};
    const cJSON *config = *p->folder ? config_optional(p->arena, in_folder(p, "config.json")) : NULL;
    const char *name = text_setting(p, "tokenizer_class", NULL);
    if (!name) name = cJSON_GetStringValue(json_member(config, "tokenizer_class"));
    if (name) {
        size_t size = strlen(name) - (text_ends(name, "Fast") ? strlen("Fast") : 0);
        const size_t tail = strlen("Tokenizer");
        if (size > tail && memcmp(name + size - tail, "Tokenizer", tail) == 0) size -= tail;
        return arena_copy(p->arena, name, size);
    }
    name = cJSON_GetStringValue(json_member(config, "model_type"));
    for (size_t i = 0; name && i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(kinds[i][0], name) == 0) return kinds[i][1];
    return name;
}

static Pieces pieces_new(Arena *arena, const char *path) {
    const char *slash = strrchr(path, '/');
    Pieces p = {.arena = arena, .folder = slash ? arena_copy(arena, path, (size_t)(slash - path)) : ".",
                .spm = spm_read(arena, path), .out = text_new(arena)};
    p.config = config_optional(arena, in_folder(&p, "tokenizer_config.json"));
    if (json_member(p.config, "added_tokens_decoder")) return p;
    p.map = config_optional(arena, in_folder(&p, "special_tokens_map.json"));
    p.more = config_optional(arena, in_folder(&p, "added_tokens.json"));
    return p;
}

const char *pieces_tokenizer(Arena *arena, const char *path, size_t *size) {
    Pieces p = pieces_new(arena, path);
    const char *class = class_of(&p);
    text_printf(&p.out, "{\"version\":\"1.0\"");
    if (!class) write_plain(&p);
    else if (strcmp(class, "Marian") == 0) write_marian(&p);
    else if (strcmp(class, "M2M100") == 0) write_m2m_100(&p);
    else if (!write_class(&p, class))
        fail("%s: a SentencePiece file alone is not read for the tokenizer's class `%.*s`; with the PyPI package "
             "transformers, AutoTokenizer.from_pretrained(\"%s\").save_pretrained(\"%s\") writes tokenizer.json", path,
             CUT(60, class), p.folder, p.folder);
    put_added(&p);
    text_printf(&p.out, "}\n");
    check_size(&p);
    *size = p.out.size;
    return p.out.data;
}

bool pieces_is(const char *path) { return text_ends(path, ".model") || text_ends(path, ".spm"); }
