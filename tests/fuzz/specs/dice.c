/* dice.c: numbers by seed, the same on every machine (splitmix64, Steele et al. 2014). */
#include "fuzz.h"

#include <string.h>

Dice dice_new(uint64_t seed, uint64_t number, const char *what) {
    uint64_t key[2] = {seed, number};
    return (Dice){hash_bytes(hash_bytes(0, key, sizeof key), what, strlen(what))};
}

uint64_t dice_bits(Dice *dice) {
    uint64_t z = dice->state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

int64_t dice_below(Dice *dice, int64_t n) { return (int64_t)(dice_bits(dice) % (uint64_t)n); }

int64_t dice_between(Dice *dice, int64_t least, int64_t most) { return least + dice_below(dice, most - least + 1); }

bool dice_chance(Dice *dice, int percent) { return dice_below(dice, 100) < percent; }

const char *dice_word(Dice *dice, const char *const *words, int n) { return words[dice_below(dice, n)]; }
