/* mp3.c: turns sounds into others for run.py. `mp3 FROM TO` writes an MP3 file or, where TO ends with wav, floats. It
 * exits with 3 where libsndfile was built without MP3, which is a part of version 1.1 and later ones. */
#include <sndfile.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    SF_INFO info = {0};
    SNDFILE *from = sf_open(argv[1], SFM_READ, &info);
    if (!from) return fprintf(stderr, "%s: %s\n", argv[1], sf_strerror(NULL)), 1;
    const size_t size = strlen(argv[2]);
    const int is_wave = size > 4 && strcmp(argv[2] + size - 4, ".wav") == 0;
    info.format = is_wave ? SF_FORMAT_WAV | SF_FORMAT_FLOAT : SF_FORMAT_MPEG | SF_FORMAT_MPEG_LAYER_III;
    if (!sf_format_check(&info)) return 3;
    SNDFILE *to = sf_open(argv[2], SFM_WRITE, &info);
    if (!to) return fprintf(stderr, "%s: %s\n", argv[2], sf_strerror(NULL)), 1;
    static float block[1 << 12];
    for (sf_count_t n; (n = sf_read_float(from, block, sizeof block / sizeof *block)) > 0;)
        if (sf_write_float(to, block, n) != n) return 1;
    sf_close(from);
    return sf_close(to) != 0;
}
