/* front.c: resolves `input mel` with the convolutions over its frames, `input patches`, and the convolution beside the
 * first layer. */
#include "settings.h"

/* A convolution of rows of that width, which is 0 where it is not known. */
static Convolution resolve_convolution(Resolver *r, const Scope *outer, const Item *item, const Stack *stack,
                                       int64_t frames, int64_t width) {
    refuse_values(r, item);
    Scope *scope = scope_enter(r, outer, BLOCK_CONVOLUTION, item->items);
    Convolution c = {.location = item->location,
                     .channels = stated(scope, F_channels) ? get(scope, F_channels) : stack->d_model,
                     .kernel = get(scope, F_kernel),
                     .stride = get(scope, F_stride),
                     .groups = get(scope, F_kernel_groups),
                     .bias = !get(scope, F_kernel_no_bias),
                     .activation = resolve_activation(r, scope, ACTIVATION_relu)};
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
    if (width && (width % c.groups || c.channels % c.groups) && known(scope, F_channels) &&
        known(scope, F_kernel_groups))
        diagnose(r->diagnostics, at, "`groups %lld` does not divide the %lld columns of the rows or the %lld of the "
                 "result", (long long)c.groups, (long long)width, (long long)c.channels);
    c.by_group = (Experts){.count = c.groups, .top = c.groups, .groups = 1, .top_groups = 1, .scale = 1};
    c.rows = convolution_rows(frames, c.stride);
    return c;
}

static void resolve_convolutions(Resolver *r, const Scope *scope, const Item *item, Stack *stack) {
    stack->convolutions = arena_array(r->arena, MOST_CONVOLUTIONS, sizeof *stack->convolutions);
    int64_t rows = stack->mel_frames, width = stack->mel_bins;
    for (const Item *i = item->items; i; i = i->next) {
        if (!item_is_block(i, "convolution")) continue;
        if (stack->n_convolutions == MOST_CONVOLUTIONS) {
            diagnose(r->diagnostics, i->location, "an encoder has at most %d convolutions", MOST_CONVOLUTIONS);
            return;
        }
        Convolution *c = &stack->convolutions[stack->n_convolutions++];
        *c = resolve_convolution(r, scope, i, stack, rows, width);
        rows = c->rows;
        width = known(scope, F_d_model) ? c->channels : 0;
    }
}

void resolve_beside(Resolver *r, Scope *scope, const Item *item, Stack *stack) {
    for (const Item *i = item->items; i && stack->input != INPUT_MEL; i = i->next) {
        if (!item_is_block(i, "convolution")) continue;
        if (stack->beside) {
            if (known(scope, F_input))
                diagnose(r->diagnostics, i->location, "several blocks `convolution` need `input mel`");
            return;
        }
        Convolution *c = arena_alloc(r->arena, sizeof *c);
        *c = resolve_convolution(r, scope, i, stack, 1, known(scope, F_d_model) ? stack->d_model : 0);
        if (c->stride != 1 && known(scope, F_input))
            diagnose(r->diagnostics, c->location,
                     "`stride` needs `input mel`: this convolution has a row for each row");
        if (c->channels != stack->d_model && known(scope, F_input) && known(scope, F_d_model))
            diagnose(r->diagnostics, c->location, "the convolution has %lld channels, and `d_model` is %lld",
                     (long long)c->channels, (long long)stack->d_model);
        stack->beside = c;
        stack->beside_norm = resolve_norm(scope);
    }
}

/* Sets the number of rows, which follows from the input; a `seq` that states another one is an error. */
static void set_rows(Resolver *r, const Scope *scope, Stack *stack, const char *what, int64_t rows) {
    if (stated(scope, F_seq) && known(scope, F_seq) && get(scope, F_seq) != rows)
        diagnose(r->diagnostics, scope->fields[F_seq].location, "%s %lld rows, not %lld", what, (long long)rows,
                 (long long)get(scope, F_seq));
    stack->seq = (Length){rows, true};
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
    if (last->channels != stack->d_model && known(scope, F_d_model))
        diagnose(r->diagnostics, last->location, "the last convolution has %lld channels, and `d_model` is %lld",
                 (long long)last->channels, (long long)stack->d_model);
    set_rows(r, scope, stack, "the convolutions give", last->rows);
}

/* What is wrong with the sizes of the image and of its squares, or NULL. */
static const char *squares_fault(const Resolver *r, const Scope *scope, const Stack *s) {
    const long long height = s->image_height, width = s->image_width, patch = s->patch;
    if (!height || !patch) return "`input patches` needs `image N` and `patch N`";
    if (patch > MOST_PATCH) return arena_printf(r->arena, "`patch` must be at most %d, found %lld", MOST_PATCH, patch);
    if (s->patch_step > patch)
        return arena_printf(r->arena, "`stride %lld` is above `patch %lld`, so that no patch has the lines between "
                            "them", (long long)s->patch_step, patch);
    if (s->image_channels > MOST_CHANNELS)
        return arena_printf(r->arena, "`channels` must be at most %d, found %lld", MOST_CHANNELS,
                            (long long)s->image_channels);
    if (height < patch || width < patch)
        return arena_printf(r->arena, "`patch %lld` is larger than the image, %lld x %lld", patch, height, width);
    if (!stated(scope, F_patch_step) && (height % patch || width % patch))
        return arena_printf(r->arena, "`patch %lld` does not divide the image, %lld x %lld", patch, height, width);
    return NULL;
}

/* The rows of the squares, and the learned ones in front of them. */
static void resolve_squares(Resolver *r, const Scope *scope, Location at, Stack *stack) {
    const char *fault = squares_fault(r, scope, stack);
    if (fault) {
        diagnose(r->diagnostics, at, "%s", fault);
        return;
    }
    int64_t rows = patch_lines(stack) * patch_columns(stack) + stack->class_token + stack->distillation_token +
                   stack->registers;
    if (rows > MOST_ROWS) diagnose(r->diagnostics, at, "the image has more than %d patches", MOST_ROWS), rows = 1;
    set_rows(r, scope, stack, "the image gives", rows);
}

void resolve_patches(Resolver *r, const Scope *scope, const Item *item, Stack *stack) {
    const Location at = stated_at(scope, F_input, item->location);
    stack->image_height = get(scope, F_image_height);
    stack->image_width = stated(scope, F_image_width) ? get(scope, F_image_width) : stack->image_height;
    stack->image_channels = get(scope, F_image_channels);
    stack->patch = get(scope, F_patch);
    stack->patch_step = stated(scope, F_patch_step) ? get(scope, F_patch_step) : stack->patch;
    stack->class_token = get(scope, F_class_token);
    stack->distillation_token = get(scope, F_distillation_token);
    stack->registers = get(scope, F_registers);
    stack->patch_bias = !get(scope, F_patch_no_bias);
    if (known(scope, F_image_height) && known(scope, F_image_width) && known(scope, F_patch) &&
        known(scope, F_patch_step) && known(scope, F_image_channels))
        resolve_squares(r, scope, at, stack);
    else stack->seq = (Length){1, true};
    if (stack->distillation_token && !stack->class_token && known(scope, F_input))
        diagnose(r->diagnostics, at, "`distillation` needs `class`");
    if (stack->registers && (!stack->class_token || stack->distillation_token) && known(scope, F_input))
        diagnose(r->diagnostics, stated_at(scope, F_registers, at),
                 "`registers` stand behind `class`, without `distillation`");
    if (stack->is_decoder) diagnose(r->diagnostics, at, "a decoder reads tokens or features, not patches");
}
