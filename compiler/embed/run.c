/* run.c: a whole run, from the inputs to the finished output. */
#include "embed.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Seconds between two places in the journal: the disk is waited for this often, and a run that is killed loses what it
 * did since. */
static const double BETWEEN = 0.5;

typedef struct Run {
    const EmbedOptions *options;
    Reader *reader;
    Rows *rows;
    Journal *journal;
    int64_t width, bound;
    Place begun, place; /* where this process began; after the last chunk */
    double written;     /* when the journal was written */
    bool unwritten;     /* rows after the place of the journal */
} Run;

SideFiles side_files(Arena *arena, const char *out) {
    struct stat info;
    if (stat(out, &info) == 0 && !S_ISREG(info.st_mode)) /* the last step would replace a device by a file */
        fail("%s: cannot be written: %s", out, S_ISDIR(info.st_mode) ? "it is a folder" : "it is not a regular file");
    if (lstat(out, &info) == 0 && S_ISLNK(info.st_mode)) {
        char *whole = realpath(out, NULL); /* so that the link stays */
        if (!whole) fail_system(errno, "%s: cannot be written", out);
        out = arena_copy(arena, whole, strlen(whole));
        free(whole);
    }
    return (SideFiles){out, arena_printf(arena, "%s.part", out), arena_printf(arena, "%s.journal", out),
                       arena_printf(arena, "%s.lock", out)};
}

/* Why a line has no vector, in a text that lives until the next call. */
static const char *reason_of(const Run *run, Fault fault) {
    static char text[300];
    const char *field = run->options->field;
    const long long bound = run->bound;
    switch (fault) {
    case FAULT_LONG_LINE: return "the line has more than 16 MiB";
    case FAULT_UTF8: return "it is not UTF-8";
    case FAULT_EMPTY: return "the line is empty, which is no JSON";
    case FAULT_JSON: return "it is no JSON";
    case FAULT_DEEP: return "its JSON is nested too deeply";
    case FAULT_KIND: return "it is neither a JSON object nor a string";
    case FAULT_NO_FIELD: snprintf(text, sizeof text, "it has no field `%.100s`", field); return text;
    case FAULT_TWICE: snprintf(text, sizeof text, "it has the field `%.100s` twice", field); return text;
    case FAULT_NO_STRING: snprintf(text, sizeof text, "its field `%.100s` is no string", field); return text;
    case FAULT_SURROGATE: return "its text has half of a surrogate pair, which is no character";
    case FAULT_NO_TOKENS: return "its text has no tokens";
    case FAULT_LONG_TEXT:
        snprintf(text, sizeof text, "its text has more than %lld tokens; `--truncate` cuts it", bound);
        return text;
    case FAULT_TOKENIZER: return "the tokenizer refuses its text";
    case FAULT_NONE: break;
    }
    bug("fault %d has no reason", (int)fault);
}

static double part_of(const Run *run, int64_t bytes) {
    const int64_t all = run->options->inputs.bytes;
    return all > 0 ? (double)bytes / (double)all : 1;
}

static void write_place(Run *run) {
    if (!run->unwritten) return;
    rows_sync(run->rows);
    journal_set(run->journal, run->place);
    run->unwritten = false;
    run->written = seconds_now();
}

static void take_bad(Run *run, const Chunk *chunk, int index, float *row) {
    const ChunkText *text = &chunk->texts[index];
    const EmbedOptions *o = run->options;
    const char *path = o->inputs.files[text->file].path, *reason = reason_of(run, text->fault);
    if (o->strict) {
        write_place(run); /* of the chunks before this one */
        fail("%s:%lld: %s", path, (long long)text->line, reason);
    }
    o->bad_line(o->with, path, text->line, reason);
    const uint32_t bits = 0x7fc00000; /* the same NaN everywhere */
    for (int64_t i = 0; i < run->width; i++) memcpy(row + i, &bits, sizeof bits);
    run->place.bad++;
}

/* The sink of the process that has the output. */
static void take_chunk(void *with, const Chunk *chunk) {
    Run *run = with;
    const EmbedOptions *o = run->options;
    const int64_t bad = run->place.bad;
    for (int i = 0; i < chunk->count; i++)
        if (chunk->texts[i].fault) take_bad(run, chunk, i, chunk->vectors + i * run->width);
    const int64_t bad_now = run->place.bad;
    run->place.bad = bad; /* a failed write leaves the place before this chunk */
    rows_put(run->rows, chunk->begin.rows, chunk->count, chunk->vectors);
    run->place = chunk->end;
    run->place.bad = bad_now;
    run->unwritten = true;
    if (seconds_now() - run->written >= BETWEEN) write_place(run);
    const int64_t bytes = reader_bytes(run->reader);
    const EmbedProgress progress = {.rows = run->place.rows,
                                    .rows_now = run->place.rows - run->begun.rows,
                                    .part = part_of(run, bytes),
                                    .part_now = part_of(run, bytes - reader_begun(run->reader))};
    o->progress(o->with, &progress);
}

/* Opens the files of an unfinished run, or begins a new one. */
static void open_files(Arena *arena, Run *run, const SideFiles *files) {
    const EmbedOptions *o = run->options;
    Command earlier;
    if (o->force) unlink(files->journal);
    run->journal = journal_open(arena, files->journal, &earlier, &run->begun);
    if (run->journal) {
        const bool damaged = run->begun.damaged > 0;
        if (damaged) earlier = command_repaired(arena, &earlier, &o->command, run->begun.damaged - 1);
        const char *difference = command_difference(arena, &earlier, &o->command);
        if (difference)
            fail("%s: an unfinished run of another command is there, and differs in %s; give that command again, or "
                 "start anew by `--force`", o->files.out, difference);
        run->rows = rows_open(arena, files->part, run->width, run->begun.rows);
        if (damaged) run->journal = journal_create(arena, files->journal, &o->command, run->begun);
    } else {
        run->rows = rows_create(arena, files->part, run->width, o->force);
        run->journal = journal_create(arena, files->journal, &o->command, (Place){0});
    }
    run->place = run->begun;
    run->place.damaged = 0;
}

/* A failure keeps what is finished. Where nothing is, it leaves no files. */
static void embed_all(Arena *arena, Embedder *embedder, Run *run, const SideFiles *files) {
    FailureTrap trap, second;
    failure_push(&trap);
    if (setjmp(trap.jump) == 0) {
        embedder_run(embedder, reader_source(run->reader), embedder_chunk(arena, embedder),
                     (ChunkSink){take_chunk, run});
        inputs_check(&run->options->inputs);
        failure_release(&trap);
        return;
    }
    failure_push(&second); /* the first reason is told */
    if (setjmp(second.jump) == 0) {
        run->place.damaged = reader_damaged(run->reader);
        run->unwritten |= run->place.damaged > 0;
        write_place(run);
        failure_release(&second);
    }
    if (run->place.rows == 0) {
        unlink(files->journal);
        unlink(files->part);
    }
    fail_status(trap.status, "%s", trap.message);
}

Place embed_run(Arena *arena, Embedder *embedder, const EmbedOptions *o, bool *was_finished) {
    const SideFiles files = o->files;
    Run run = {.options = o,
               .width = embedder_width(embedder),
               .bound = embedder_bound(embedder),
               .written = seconds_now()};
    Place end;
    const char *why;
    const Finished finished = o->force ? FINISHED_NONE : rows_finished(arena, o->files.out, &o->command, &end, &why);
    *was_finished = finished == FINISHED_SAME;
    if (finished == FINISHED_OTHER)
        fail("%s: is there already: %s; `--force` replaces it", o->files.out, why);
    if (finished == FINISHED_SAME) {
        unlink(files.journal); /* a run that was killed after its last rename leaves it */
        return end;
    }
    open_files(arena, &run, &files);
    if (o->strict && run.place.bad)
        fail("%s: the finished part of this run has %s without a vector, which `--strict` refuses", o->files.out,
             counted(arena, run.place.bad, "row"));
    run.reader = reader_new(arena, &o->inputs, o->field, o->prompt, run.begun);
    embed_all(arena, embedder, &run, &files);
    rows_finish(arena, run.rows, o->files.out, run.place, &o->command);
    unlink(files.journal);
    return run.place;
}
