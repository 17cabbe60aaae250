/* emit.h: what prints C, and nothing else does: one writer and one template engine.
 *
 * Templates are files of templates/; `embed` packs them into the program, so that a compiler in use reads none of them
 * from disk. */
#ifndef ATTNC_EMIT_H
#define ATTNC_EMIT_H

#include "../attnc.h"
#include "../lower/lower.h"
#include "template.h"

/* ======================================================================= emit/pairs.c
 * Sets what look_ahead.c.tmpl prints: the masks of a decoder's states that are not known to look back. */
void set_look_ahead(Arena *arena, TemplateVars *vars, const Program *program);

/* ======================================================================= emit/writer.c
 * Owns output text. A line is given without its indentation; the writer computes it from the braces
 * seen so far (4 spaces a brace but that of `extern "C" {`, 4 more inside open parentheses, preprocessor lines at
 * column 0), and breaks it where it is longer than C_COLUMNS: c_wrap. */
typedef struct Writer Writer;

/* Beyond `budget` bytes the program ends with EXIT_CANNOT and the message
 * "OVER_BUDGET: it is over BUDGET bytes of C". */
Writer *writer_new(Arena *arena, size_t budget, const char *over_budget);
void writer_line(Writer *writer, const char *format, ...) __attribute__((format(printf, 2, 3)));
void writer_raw_line(Writer *writer, const char *line, size_t size); /* prints text that is no format */
void writer_fold_constants(Writer *writer); /* from here on, lines have no idle constants: c_fold */
void writer_assembly(Writer *writer);       /* lines are assembly: labels at column 0, all else at 4 */
void writer_verbatim(Writer *writer);       /* lines are no C and keep their indentation; none is broken */
void writer_blank(Writer *writer); /* never two in a row, nor at the start, after a `{` or before a `}` */
const char *writer_fresh(Writer *writer, const char *stem); /* "stem_12": another number at each call in a function */
const char *writer_text(const Writer *writer, size_t *size);         /* what was written so far; size may be NULL */
/* The size of the text, at a place outside of all braces where a function begins, and the writer back at that place. */
size_t writer_begin(Writer *writer);
void writer_take_back(Writer *writer, size_t place);
void writer_need(const Writer *writer, size_t bytes); /* ends the program if the budget has no room for them */
/* The text since the end of the last part becomes a part, or joins the last part if that has the same names. Returns
 * the part's index. */
int writer_part(Writer *writer, const char *target, const char *kind, const char *name);
/* Inserts the text of another writer, between blank lines, where this writer stood outside of all braces when its text
 * had `place` bytes. The text is added to that part; places behind it move. */
void writer_insert(Writer *writer, size_t place, int part, const Writer *from);
const CodePart *writer_parts(Writer *writer, int *n); /* those that have text */

/* ======================================================================= emit/c_text.c */
const char *upper_case(Arena *arena, const char *text);
const char *hex_float(Arena *arena, double value); /* "0x1.8p+1f" */
static inline bool c_starts_name(char c) { return (unsigned)((c | 0x20) - 'a') < 26 || c == '_'; }
static inline bool c_in_name(char c) { return c_starts_name(c) || (unsigned)(c - '0') < 10; }
bool c_stands_alone(const char *text); /* beside any operator, without parentheses */
/* Returns the position behind the string or character that begins at `at`, or `end` if it is not closed. */
const char *c_literal_end(const char *at, const char *end);
/* Whether lines of C, each ended by a newline, declare something outside their own braces. */
bool c_declares(const char *text, size_t size);
/* The C text of an operation; an argument is put in parentheses where it needs them. */
const char *isa_spell(Arena *arena, const IsaOp *op, const char *const *args, const char *prefix);

/* ======================================================================= emit/c_fold.c
 * Takes `+ 0`, `1 *` and the like out of a line of C. */
void c_fold(Text *line, bool in_comment);
/* Whether the 0 or 1 at i is a whole number beside an operator. Only a line with such a number is worth folding. */
bool c_may_fold(const char *line, size_t size, size_t i);

/* ======================================================================= emit/c_wrap.c */
enum { C_COLUMNS = 120 };
/* Appends a line that is too long at `column` as several, with their indentation. A preprocessor line, or one that goes
 * on with a `\` in front of it (`in_directive`), is broken by `\`. */
void c_wrap(Text *out, const char *line, size_t size, size_t column, bool in_comment, bool in_directive);

/* ======================================================================= emit/probes.c */
/* Sets the list `probes` for probe.c.tmpl and the list `auxv_probes` for probe_auxv.c.tmpl, which have a record {bit,
 * name, words} for each target of `isas` that is probed; the bit is the target's index in `isas`. Each record {name,
 * mask} of `words` names a variable of the template and the bits that must be set in it. Also sets the other names that
 * the two templates use, and `probe_guard`, the preprocessor condition under which a machine is probed. */
void set_probes(Arena *arena, const Isa *const *isas, TemplateVars *vars);
/* Whether init takes another target of `isas` in place of this one on machines with its `slow_with`. */
bool may_be_slow(const Isa *const *isas, const Isa *isa);

/* ======================================================================= emit/interface.c
 * Names for the templates of the functions that users call. */
/* The C type of the numbers of an input, whose integers have 32 bits unless `bit` reads them. */
static inline const char *input_c_type(const InputKind *kind) {
    const Dtype dtype = kind->dtype;
    return kind->wide ? "int64_t" : dtype == DTYPE_I64 ? "int32_t" : dtype == DTYPE_U8 ? "unsigned char" : "float";
}
EntrySizes set_entry(Arena *arena, const Plan *plan, int64_t scratch_bytes, TemplateVars *vars);
void set_run(const Program *program, TemplateVars *vars);
void set_states(Arena *arena, const Program *program, TemplateVars *vars, int64_t *state_bytes, int64_t *source_bytes);

/* ======================================================================= emit/search.c
 * Names for search.h.tmpl: the spec's settings of a search, by the names of attn_generate_options. */
void set_search(Arena *arena, const Model *model, TemplateVars *vars);

/* ======================================================================= emit/names.c */
typedef struct Names Names;
Names *names_new(Arena *arena, const Program *program, struct Schedule *const *schedules);
void set_offsets(Arena *arena, const Names *names, TemplateVars *vars);
void set_workspace(Arena *arena, const Names *names, EntryKind entry, TemplateVars *vars);

/* ======================================================================= emit/shared.c
 * Functions of a target that targets based on it call too. */
typedef struct SharedCode SharedCode;
SharedCode *shared_code_new(Arena *arena, const char *model, const Isa *const *isas); /* the file's, ended by NULL */
/* Notes the text of a target's function, which begins with the text's first line. Returns the name of the same function
 * of a target whose table this one is based on, or `name` if there is none. Functions behind a `kernel` may call it. */
const char *shared_function(SharedCode *shared, const Isa *isa, bool kernel, const char *name, const char *text,
                            size_t size);

/* ======================================================================= emit/kernels.c
 * One target's part of the file: its kernels, its steps, and the function that runs them on a chunk. */
/* The arena keeps what is used until the file is done; `model` is the prefix of every name. Targets are written behind
 * those that they are based on; the steps of the first one of a file have comments. */
void emit_target(Arena *arena, Writer *writer, const char *model, const Schedule *schedule, const Names *names,
                 SharedCode *shared, bool first);
/* Prints NAME_ENTRY_steps, the function of all targets that runs the steps of an entry on a chunk. `plan` may be the
 * schedule of any target: the order of the steps is the same in all of them. */
void emit_order(Arena *arena, Writer *writer, const char *model, const PlanSchedule *plan);
/* Prints NAME_look_shows, which tells by masks whether a row of a state sees a later key, if one of the masks compares
 * real numbers. All targets share this function. `file` has what set_look_ahead sets. */
void emit_look_pairs(Arena *arena, Writer *writer, const char *model, const Plan *decode, TemplateVars *file);

/* ======================================================================= emit/pairs.c */
/* Sets what the templates of attention read of its rules: `scores`, `mask` and their inputs. `caches` names the offset
 * of each cache of the program. */
void pair_variables(Arena *arena, TemplateVars *vars, const AttentionStep *a, const Program *program,
                    const char *const *caches);

/* ======================================================================= emit/formulas.c */
/* Sets the variables of math.c.tmpl for an activation that is an expression: its `name`, its `text`, `lines` with one
 * line of C for each operation, and `result`, the variable that the last line sets. Each function of math.c.tmpl that a
 * line calls is marked in `helpers` as `uses_NAME`. */
void formula_variables(Arena *arena, TemplateVars *formula, TemplateVars *helpers, const char *name,
                       const PairRule *rule);

#endif
