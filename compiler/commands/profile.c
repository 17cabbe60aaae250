/* profile.c: attnc bench --profile: the code calls on_step between its steps, and the clock is read there. */
#include "profile.h"

#include "commands.h"

static void on_step(void *watcher, int step) {
    Profile *p = watcher;
    const double now = seconds_now();
    if (step > 0) {
        p->steps[step - 1].running += now - p->last - p->clock;
        p->steps[step - 1].chunks++;
    }
    p->last = seconds_now();
}

/* The part of a step's measured time that on_step itself takes. */
static double clock_seconds(Profile *p) {
    enum { LOOKS = 1001 };
    static double seconds[LOOKS];
    void (*volatile look)(void *, int) = on_step; /* called as the code calls it */
    for (int i = 0; i < LOOKS; i++) {
        p->steps[0].running = 0;
        look(p, 0);
        look(p, 1);
        seconds[i] = p->steps[0].running;
    }
    return sort_median(seconds, LOOKS);
}

Profile *profile_new(Arena *arena, const Plan *plan, int most_runs) {
    Profile *p = arena_alloc(arena, sizeof *p);
    *p = (Profile){.plan = plan, .most_runs = most_runs};
    p->steps = arena_array(arena, (size_t)plan->n_steps, sizeof *p->steps);
    for (int i = 0; i < plan->n_steps; i++)
        p->steps[i].runs = arena_array(arena, (size_t)most_runs, sizeof *p->steps[i].runs);
    p->clock = clock_seconds(p);
    return p;
}

void profile_count(Profile *p, const CallRows *rows, double share) {
    for (int i = 0; i < p->plan->n_steps; i++) {
        p->steps[i].flops += share * step_flops(p->plan, &p->plan->steps[i], rows);
        p->steps[i].bytes += share * step_bytes(p->plan, &p->plan->steps[i], rows);
    }
}

void profile_watch(Profile *p, Engine *engine) {
    engine->call.on_step = on_step;
    engine->call.watcher = p;
    int status = engine_init(engine);
    if (status) bug("the compiled model refuses to begin: %s", engine_text(engine, status));
}

void profile_begin(Profile *p) {
    for (int i = 0; i < p->plan->n_steps; i++) {
        p->steps[i].running = 0;
        p->steps[i].chunks = 0;
    }
}

void profile_end(Profile *p, int64_t calls) {
    if (p->runs == p->most_runs) bug("more than %d runs of a profile", p->most_runs);
    for (int i = 0; i < p->plan->n_steps; i++) {
        ProfileStep *s = &p->steps[i];
        s->runs[p->runs] = s->running > 0 ? s->running / (double)calls : 0;
        s->chunks /= calls;
    }
    p->runs++;
}

void profile_finish(Profile *p) {
    for (int i = 0; i < p->plan->n_steps; i++) p->steps[i].median = sort_median(p->steps[i].runs, p->runs);
}

/* ---------------------------------------------------------------- printing */

/* The seconds of a step's flops at the rate of what multiplies its rows. */
static double compute_seconds(const Profile *p, int step) {
    const Step *s = &p->plan->steps[step];
    const bool narrow = s->kind == STEP_GEMM &&
                        (s->gemm.bf16 || p->plan->buffers[s->gemm.x.buffer].slot.layout.dtype == DTYPE_U8);
    return p->steps[step].flops > 0 ? p->steps[step].flops / (narrow && p->unit > 0 ? p->unit : p->peak) : 0;
}

/* The step's time at the rates: the longer of that of its flops and that of its bytes; 0: unknown. */
static double predicted_seconds(const Profile *p, int step) {
    const ProfileStep *s = &p->steps[step];
    if (p->read == 0 || (s->flops > 0 && p->peak == 0)) return 0;
    const double compute = compute_seconds(p, step), memory = s->bytes / p->read;
    return compute > memory ? compute : memory;
}

static const char *ratio_text(Arena *arena, double measured, double predicted) {
    return predicted > 0 ? arena_printf(arena, "%.2f", measured / predicted) : "-";
}

static void print_row(const char *kind, const char *name, const char *chunks, const char *time, const char *share,
                      const char *predicted, const char *limit, const char *ratio) {
    printf("%-10s %-44s %6s %10s %8s %10s %-6s %6s\n", kind, name, chunks, time, share, predicted, limit, ratio);
}

void profile_print(Arena *arena, const Profile *p, double unwatched) {
    double steps = 0, sum = 0;
    bool known = true;
    for (int i = 0; i < p->plan->n_steps; i++) {
        steps += p->steps[i].median;
        sum += predicted_seconds(p, i);
        known &= predicted_seconds(p, i) > 0;
    }
    printf("\n");
    print_row("kind", "step", "calls", "median", "share", "predicted", "by", "ratio");
    for (int i = 0; i < p->plan->n_steps; i++) {
        const Step *step = &p->plan->steps[i];
        const ProfileStep *s = &p->steps[i];
        const double predicted = predicted_seconds(p, i);
        const bool compute = p->peak > 0 && compute_seconds(p, i) > s->bytes / p->read;
        print_row(step_kind_name(step->kind), step->name, arena_printf(arena, "%lld", (long long)s->chunks),
                  duration_text(arena, s->median), arena_printf(arena, "%.2f %%", 100 * s->median / steps),
                  predicted > 0 ? duration_text(arena, predicted) : "-",
                  predicted == 0 ? "-" : compute ? "flops" : "bytes", ratio_text(arena, s->median, predicted));
    }
    print_row("", "all steps", "", duration_text(arena, steps), "100 %", known ? duration_text(arena, sum) : "-", "",
              known ? ratio_text(arena, steps, sum) : "-");
    printf("\nall steps: %.1f %% of the %s that a call takes without the profile, and %s with it (median of %s)\n",
           100 * steps / unwatched, duration_text(arena, unwatched), duration_text(arena, p->median),
           counted(arena, p->runs, "run"));
    const char *unit = p->unit > 0 ? arena_printf(arena, " (products of narrow rows at %s)",
                                                  amount_text(arena, p->unit, "OP/s")) : "";
    printf("predicted: the longer of flops at %s%s and bytes at %s, which one core reads from memory\n",
           amount_text(arena, p->peak, "FLOP/s"), unit, amount_text(arena, p->read, "B/s"));
}

void profile_json(const Profile *p) {
    printf("\"profile\": {\"median_s\": %.9g, \"runs\": %d, \"clock_s\": %.9g, \"steps\": [", p->median, p->runs,
           p->clock);
    for (int i = 0; i < p->plan->n_steps; i++) {
        const ProfileStep *s = &p->steps[i];
        printf("%s{\"name\": \"%s\", \"kind\": \"%s\", \"calls\": %lld, \"median_s\": %.9g, \"flops\": %.0f, "
               "\"bytes\": %.0f, \"predicted_s\": ", i ? ", " : "", p->plan->steps[i].name,
               step_kind_name(p->plan->steps[i].kind), (long long)s->chunks, s->median, s->flops, s->bytes);
        const double predicted = predicted_seconds(p, i);
        if (predicted > 0) printf("%.9g, \"ratio\": %.4f}", predicted, s->median / predicted);
        else printf("null, \"ratio\": null}");
    }
    printf("]}");
}
