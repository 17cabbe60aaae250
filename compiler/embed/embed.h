/* embed.h: the vectors of the texts of many files, in one file.
 *
 * Texts are read, embedded and written by chunks, so that the memory of a run does not grow with the files. The loop
 * takes chunks from a ChunkSource and gives them, with their vectors, to a ChunkSink. In one process the source reads
 * the files and the sink writes the rows; processes that share a run would send both to the process that does.
 *
 *   stream.c, zstd.c  the bytes of a file, which may be compressed      journal.c  how far a run has come, kept on disk
 *   json_line.c       the text of a line of JSON                        lock.c     one process for an output
 *   reader.c          files -> chunks of texts                          rows.c     the .npy file
 *   embedder.c        texts -> vectors, in several threads              run.c      a whole run */
#ifndef EMBED_H
#define EMBED_H

#include "../engine/engine.h"
#include "../project/words.h"

/* --- stream.c: a file, plain, or compressed by gzip or zstd, as its first bytes or the end of its name say. A damaged
 * file and one that ends within its compressed data are failures that name the file. */
typedef struct Stream Stream;
Stream *stream_open(const char *path);
void stream_close(Stream *stream);
size_t stream_take(Stream *stream, void *to, size_t room); /* the number of bytes, 0 only at the end */
void stream_skip(Stream *stream, int64_t bytes);           /* from the beginning; a failure if there are fewer */
int64_t stream_read_bytes(const Stream *stream);           /* of the file as it is stored, for progress */
bool stream_is_damaged(const Stream *stream);              /* or truncated, which was the failure */

/* --- zstd.c: frames of zstd. Without libzstd, zstd_is_built is false and the others are bugs to call. */
typedef struct Zstd Zstd;
bool zstd_is_built(void);
Zstd *zstd_new(void); /* NULL: out of memory */
void zstd_free(Zstd *zstd);
/* Decompresses from `from`, of which *used bytes are read, to `to`, of which *made bytes are written. *ended: a frame
 * is complete. Returns NULL, or the reason of a failure. */
const char *zstd_step(Zstd *zstd, const void *from, size_t bytes, size_t *used, void *to, size_t room, size_t *made,
                      bool *ended);

/* Why a line has no vector. */
typedef enum Fault {
    FAULT_NONE, FAULT_LONG_LINE, FAULT_UTF8, FAULT_EMPTY, FAULT_JSON, FAULT_DEEP, FAULT_KIND, FAULT_NO_FIELD,
    FAULT_TWICE, FAULT_NO_STRING, FAULT_SURROGATE, FAULT_NO_TOKENS, FAULT_LONG_TEXT, FAULT_TOKENIZER
} Fault;

/* --- json_line.c: takes a line of valid UTF-8 at *text [*bytes], a JSON string or an object with the field (RFC 8259),
 * decodes its text in its place and sets *text and *bytes to this text. */
Fault json_line(char **text, size_t *bytes, const char *field);

/* ---------------------------------------------------------------- chunks */

/* A place between two lines of the inputs, and what is before it. */
typedef struct Place {
    int64_t rows;               /* lines of all files */
    int64_t file, offset, line; /* the index of a file; decompressed bytes and lines of it */
    uint64_t hash;              /* of these bytes */
    int64_t bad;                /* rows without a vector */
    int64_t damaged;            /* the index of a damaged file, which ended the run, plus one; else 0 */
} Place;

typedef struct ChunkText {
    Fault fault;
    size_t at, bytes;   /* of the text, after the prompt, in the chunk's bytes */
    int64_t file, line; /* counted from 0 and from 1 */
} ChunkText;

typedef struct Chunk {
    Place begin, end;
    ChunkText *texts; /* [count] */
    int count, most;  /* at most `most` */
    Text bytes;       /* all texts, one after the other */
    float *vectors;   /* [count][width], of texts without a fault */
} Chunk;

/* Sets the next chunk; false after the last. */
typedef struct ChunkSource {
    bool (*next)(void *with, Chunk *chunk);
    void *with;
} ChunkSource;

/* Takes chunks with their vectors, in the order of their rows. */
typedef struct ChunkSink {
    void (*take)(void *with, const Chunk *chunk);
    void *with;
} ChunkSink;

/* --- reader.c: the files of a run. */
typedef struct InputFile {
    const char *path;
    int64_t bytes, seconds, nanoseconds; /* its size as it is stored, and when it was changed */
    bool lines;                          /* NAME.txt, also compressed: each line is a text */
} InputFile;

typedef struct Inputs {
    InputFile *files;
    int64_t count, bytes; /* bytes of all files */
} Inputs;

Inputs inputs_find(Arena *arena, const char *const *paths, int64_t count);
void inputs_check(const Inputs *inputs); /* a failure if one of them was changed since inputs_find */

typedef struct Reader Reader;
Reader *reader_new(Arena *arena, const Inputs *inputs, const char *field, const char *prompt, Place from);
ChunkSource reader_source(Reader *reader);
int64_t reader_damaged(const Reader *reader); /* as in a Place */
/* Of all files, as they are stored: what is read, and what was read at the place where the reader began. */
int64_t reader_bytes(const Reader *reader);
int64_t reader_begun(const Reader *reader);

/* --- embedder.c */
typedef struct Embedder Embedder;
/* The engine runs its calls in one thread; the embedder has `threads` of its own, each with a call. `truncate`: texts
 * lose the tokens beyond the bound of the model. A failure if the model has no vector of a text. */
Embedder *embedder_new(Arena *arena, Engine *engine, const Words *words, bool truncate, int threads);
int64_t embedder_width(const Embedder *embedder);
int64_t embedder_bound(const Embedder *embedder);
Chunk *embedder_chunk(Arena *arena, const Embedder *embedder); /* an empty one, as large as the embedder allows */
/* Takes chunks until the source has no more. A text's vector has the same bits for any threads and chunks. */
void embedder_run(Embedder *embedder, ChunkSource source, Chunk *chunk, ChunkSink sink);

/* --- lock.c: holds the file `path` until the process ends; false if another process holds it. A process holds one. No
 * child inherits the lock. exit() removes the file. */
bool lock_take(const char *path);

/* --- command.c: what the bytes of an output depend on. */
typedef enum CommandItem {
    ITEM_VERSION, ITEM_SPEC, ITEM_PRECISION, ITEM_TARGET, ITEM_WEIGHTS, ITEM_TOKENIZER, ITEM_FIELD, ITEM_TRUNCATE,
    ITEM_INPUTS, ITEM_COUNT
} CommandItem;

/* A text of lines for each; that of the inputs has a line for each file. The packed weights depend on the items before
 * them, which are compared first. */
typedef struct Command {
    const char *items[ITEM_COUNT];
} Command;

extern const char *const command_names[ITEM_COUNT];       /* as a message names them */
const char *inputs_text(Arena *arena, const Inputs *inputs); /* the item of the inputs */
uint64_t command_hash(const Command *command, CommandItem item);
/* What differs first, as "`--field`: title then, text now"; NULL if the commands are the same. */
const char *command_difference(Arena *arena, const Command *earlier, const Command *now);
/* The earlier command with the size and the time that a file of the inputs has now, if its name is the same. */
Command command_repaired(Arena *arena, const Command *earlier, const Command *now, int64_t file);

/* --- journal.c: the command and the place up to which all rows are on the disk. The place is written to one of two
 * slots in turns, with a checksum, so that a process that is killed at any time leaves a valid one. */
typedef struct Journal Journal;
Journal *journal_create(Arena *arena, const char *path, const Command *command, Place place);
/* NULL if there is no such file; a failure if it is damaged. */
Journal *journal_open(Arena *arena, const char *path, Command *command, Place *place);
void journal_set(Journal *journal, Place place);
void folder_sync(const char *path); /* the folder of that file */

/* --- rows.c: the rows of an output. They are written to a file of another name, which becomes the output when all of
 * them and the header are on the disk. Spaces and tabs of the header's padding say which command made it. */
typedef struct Rows Rows;
Rows *rows_create(Arena *arena, const char *path, int64_t width, bool replace);
Rows *rows_open(Arena *arena, const char *path, int64_t width, int64_t count); /* that has `count` rows or more */
void rows_put(Rows *rows, int64_t at, int64_t count, const float *vectors);
void rows_sync(Rows *rows);
/* Writes the header, and renames the file. */
void rows_finish(Arena *arena, Rows *rows, const char *to, Place end, const Command *command);
/* A finished output: whether there is a file, and if this command made it; `why` says in words what differs. */
typedef enum Finished { FINISHED_NONE, FINISHED_SAME, FINISHED_OTHER } Finished;
Finished rows_finished(Arena *arena, const char *path, const Command *command, Place *end, const char **why);

/* --- run.c */
typedef struct EmbedProgress {
    int64_t rows, rows_now; /* finished; of them by this process */
    double part;            /* of all bytes of the inputs, 0 to 1 */
    double part_now;        /* of them by this process */
} EmbedProgress;

/* An output and the files next to it; a failure if the path is no place for a regular file. */
typedef struct SideFiles {
    const char *out, *part, *journal, *lock;
} SideFiles;
SideFiles side_files(Arena *arena, const char *out);

typedef struct EmbedOptions {
    SideFiles files;
    Inputs inputs;
    const char *field, *prompt;
    bool strict, force;
    Command command;
    /* What a person reads: lines without a vector, and how far the run is. */
    void (*bad_line)(void *with, const char *path, int64_t line, const char *reason);
    void (*progress)(void *with, const EmbedProgress *progress);
    void *with;
} EmbedOptions;

/* Writes the output and returns its last place. *was_finished: it was complete already, and nothing is changed. The
 * caller holds the lock. */
Place embed_run(Arena *arena, Embedder *embedder, const EmbedOptions *options, bool *was_finished);

#endif
