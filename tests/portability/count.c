/* A plugin of qemu's that counts the instructions which a program executes in some ranges of addresses. Its arguments
 * are `from=A,to=B`, repeated; at the end it prints the sum. The declarations are those of version 1 of the interface
 * of plugins, whose header Debian does not have. */
#include <inttypes.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef uint64_t PluginId;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
enum { INLINE_ADD_U64 = 0 };

size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *block);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *block, size_t index);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *instruction);
void qemu_plugin_register_vcpu_tb_trans_cb(PluginId id, void (*translate)(PluginId, struct qemu_plugin_tb *));
void qemu_plugin_register_vcpu_insn_exec_inline(struct qemu_plugin_insn *instruction, int op, void *counter,
                                                uint64_t value);
void qemu_plugin_register_atexit_cb(PluginId id, void (*end)(PluginId, void *), void *with);
void qemu_plugin_outs(const char *text);

enum { MOST_RANGES = 256 };
static struct { uint64_t from, to; } ranges[MOST_RANGES];
static int n_ranges;
static uint64_t count;

int qemu_plugin_version = 1;

static void translate(PluginId id, struct qemu_plugin_tb *block) {
    (void)id;
    for (size_t i = 0; i < qemu_plugin_tb_n_insns(block); i++) {
        struct qemu_plugin_insn *instruction = qemu_plugin_tb_get_insn(block, i);
        const uint64_t at = qemu_plugin_insn_vaddr(instruction);
        for (int r = 0; r < n_ranges; r++)
            if (at >= ranges[r].from && at < ranges[r].to)
                qemu_plugin_register_vcpu_insn_exec_inline(instruction, INLINE_ADD_U64, &count, 1);
    }
}

static void end(PluginId id, void *with) {
    (void)id, (void)with;
    char text[40];
    snprintf(text, sizeof text, "counted %" PRIu64 "\n", count);
    qemu_plugin_outs(text);
}

int qemu_plugin_install(PluginId id, const void *information, int argc, char **argv);
int qemu_plugin_install(PluginId id, const void *information, int argc, char **argv) {
    (void)information;
    for (int i = 0; i < argc && n_ranges < MOST_RANGES; i++) {
        if (strncmp(argv[i], "from=", 5) == 0) ranges[n_ranges].from = strtoull(argv[i] + 5, NULL, 0);
        if (strncmp(argv[i], "to=", 3) == 0) ranges[n_ranges++].to = strtoull(argv[i] + 3, NULL, 0);
    }
    qemu_plugin_register_vcpu_tb_trans_cb(id, translate);
    qemu_plugin_register_atexit_cb(id, end, NULL);
    return 0;
}
