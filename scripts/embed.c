/* embed.c: a tool of the build. `embed FILE... > out.c` prints the files as one C source that defines
 * embedded_text(name). A string literal of C11 need not hold more than 4095 bytes, and clang's -pedantic
 * says so, so a file is an array of bytes spelled as character codes. */
#include <stdio.h>
#include <string.h>

static const char *base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static int print_file(const char *path, int number) {
    FILE *file = fopen(path, "rb");
    if (!file) {
        perror(path);
        return 1;
    }
    printf("/* %s */\nstatic const char file_%d[] = {\n", base_name(path), number);
    int c, column = 0;
    while ((c = getc(file)) != EOF) {
        if (c == 0 || c > 126) { /* a zero would end the text early; others would not fit a signed char */
            fprintf(stderr, "embed: %s: has the byte 0x%02x, only ASCII is taken\n", path, (unsigned)c);
            fclose(file);
            return 1;
        }
        printf("%d,%s", c, ++column % 32 == 0 ? "\n" : "");
    }
    printf("0};\n\n");
    int bad = ferror(file);
    if (bad) fprintf(stderr, "embed: %s: cannot be read\n", path);
    fclose(file);
    return bad;
}

int main(int argc, char **argv) {
    printf("/* The templates, target tables and pages of the compiler, as text; made by scripts/embed.c. */\n");
    printf("#include <string.h>\n\nconst char *embedded_text(const char *name);\n");
    printf("const char *embedded_name(int i);\n\n");
    for (int i = 1; i < argc; i++) {
        for (int j = 1; j < i; j++)
            if (strcmp(base_name(argv[i]), base_name(argv[j])) == 0) {
                fprintf(stderr, "embed: two files are named %s\n", base_name(argv[i]));
                return 1;
            }
        if (print_file(argv[i], i)) return 1;
    }
    printf("/* Each file by its base name. */\nstatic const struct {\n    const char *name, *text;\n} files[] = {\n");
    for (int i = 1; i < argc; i++) printf("    {\"%s\", file_%d},\n", base_name(argv[i]), i);
    printf("    {NULL, NULL},\n};\n\n");
    printf("const char *embedded_text(const char *name) {\n");
    printf("    for (int i = 0; files[i].name; i++)\n");
    printf("        if (strcmp(files[i].name, name) == 0) return files[i].text;\n");
    printf("    return NULL;\n}\n");
    printf("\nconst char *embedded_name(int i) { return files[i].name; }\n");
    if (fflush(stdout) || ferror(stdout)) {
        perror("embed");
        return 1;
    }
    return 0;
}
