/* front.c: resolves `input mel` and the convolutions over its frames. */
#include "settings.h"

static Convolution resolve_convolution(Resolver *r, const Scope *outer, const Item *item, int64_t frames) {
    if (item->values)
        diagnose(r->diagnostics, item->values->location, "`convolution` is followed by its block, not by a value");
    Scope *scope = scope_enter(r, outer, BLOCK_CONVOLUTION, item->items);
    Convolution c = {.location = item->location,
                     .channels = stated(scope, F_channels) ? get(scope, F_channels) : r->model->d_model,
                     .kernel = get(scope, F_kernel),
                     .stride = get(scope, F_stride),
                     .bias = !get(scope, F_kernel_no_bias),
                     .activation = (Activation)get(scope, F_activation)};
    const Location at = stated_at(scope, F_kernel, item->location);
    if (known(scope, F_kernel)) {
        if (!c.kernel) diagnose(r->diagnostics, at, "this convolution needs `kernel N`");
        else if (c.kernel > MOST_KERNEL)
            diagnose(r->diagnostics, at, "`kernel` must be at most %d, found %lld", MOST_KERNEL, (long long)c.kernel);
        else if (c.kernel % 2 == 0)
            diagnose(r->diagnostics, at, "`kernel %lld` is even, and as many rows stand on both sides of a row",
                     (long long)c.kernel);
    }
    if (get(scope, F_gated) || get(scope, F_activation_limit) > 0 || get(scope, F_activation_plus_one))
        diagnose(r->diagnostics, stated_at(scope, F_activation, item->location),
                 "an activation behind a convolution is not `gated`");
    c.rows = convolution_rows(frames, c.stride);
    return c;
}

static void resolve_convolutions(Resolver *r, const Scope *scope, const Item *item, Stack *stack) {
    stack->convolutions = arena_array(r->arena, MOST_CONVOLUTIONS, sizeof *stack->convolutions);
    int64_t rows = stack->mel_frames;
    for (const Item *i = item->items; i; i = i->next) {
        if (!item_is_block(i, "convolution")) continue;
        if (stack->n_convolutions == MOST_CONVOLUTIONS) {
            diagnose(r->diagnostics, i->location, "an encoder has at most %d convolutions", MOST_CONVOLUTIONS);
            return;
        }
        Convolution *c = &stack->convolutions[stack->n_convolutions++];
        *c = resolve_convolution(r, scope, i, rows);
        rows = c->rows;
    }
}

void resolve_mel(Resolver *r, Scope *scope, const Item *item, Stack *stack) {
    const Location at = stated_at(scope, F_input, item->location);
    stack->mel_bins = get(scope, F_mel_bins);
    stack->mel_frames = get(scope, F_mel_frames);
    stack->seq = (Length){1, true};
    if (stack->is_decoder) diagnose(r->diagnostics, at, "a decoder reads tokens or features, not a spectrogram");
    if (!known(scope, F_mel_bins) || !known(scope, F_mel_frames)) return;
    if (!stack->mel_bins || !stack->mel_frames) {
        diagnose(r->diagnostics, at, "`input mel` needs `bins N` and `frames N`");
        return;
    }
    if (stack->mel_frames > MOST_ROWS) {
        diagnose(r->diagnostics, at, "`frames` must be at most %d", MOST_ROWS);
        return;
    }
    resolve_convolutions(r, scope, item, stack);
    if (!stack->n_convolutions) {
        if (!scope->lost)
            diagnose(r->diagnostics, item->location, "`input mel` needs a block `convolution { kernel N }`");
        return;
    }
    const Convolution *last = &stack->convolutions[stack->n_convolutions - 1];
    if (last->channels != r->model->d_model && known(scope, F_d_model))
        diagnose(r->diagnostics, last->location, "the last convolution has %lld channels, and `d_model` is %lld",
                 (long long)last->channels, (long long)r->model->d_model);
    stack->seq.n = last->rows;
    if (stated(scope, F_seq) && known(scope, F_seq) && get(scope, F_seq) != last->rows)
        diagnose(r->diagnostics, scope->fields[F_seq].location, "the convolutions give %lld rows, not %lld",
                 (long long)last->rows, (long long)get(scope, F_seq));
}
