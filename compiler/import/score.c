/* score.c: the heads of decoders whose score of a text is the logit of one token in the last row, or the difference
 * between the logits of two tokens, such as `yes` and `no` (Qwen3-Reranker: Zhang et al. 2025, arXiv:2506.05176; the
 * module LogitScore of sentence-transformers). Such a head is a classifier whose rows are those of the tokens. */
#include "import.h"

#include <stdlib.h>
#include <string.h>

int64_t score_token(const char *text) {
    char *end;
    const long long id = strtoll(text, &end, 10);
    return *text < '0' || *text > '9' || *end || id > INT32_MAX ? -1 : id;
}

void score_task(Import *import) {
    const Score *score = &import->score;
    const char *task = variable_get(import, "task", 4);
    if (!score->n) return;
    if (!task || strcmp(task, "logits") != 0)
        fail("%s: the score is that of tokens, and %s gives no logits of tokens", score->origin, import->class_name);
    variable_set(import, "task", "score");
    variable_set(import, "answers", score->n > 1 ? "2" : "1");
    variable_set(import, "answer_rows", score->n > 1 ? arena_printf(import->arena, "%lld %lld",
        (long long)score->tokens[0], (long long)score->tokens[1]) : arena_printf(import->arena, "%lld",
        (long long)score->tokens[0]));
    import_note(import, score->n > 1 ? "The score of a text is `logits[0] - logits[1]`, of the tokens %lld and %lld."
                                     : "The score of a text is `logits[0]`, of the token %lld.",
        (long long)score->tokens[0], (long long)score->tokens[1]);
}

void score_check(const Import *import, const char *body) {
    if (import->score.n && !strstr(body, "head pool last classifier "))
        fail("%s: the score is that of tokens, which import does not know of `%s`", import->score.origin, import->type);
}
