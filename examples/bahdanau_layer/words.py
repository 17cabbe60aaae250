#!/usr/bin/env python3
"""Numbers below a billion in English and German words, and which of them training never sees. Run as a program it
prints words.h."""
import zlib

DIGITS = 9  # of the longest number
ENGLISH, GERMAN = 10, 11  # the source's symbols behind the ten digits; one of them stands before a number
END = 0  # the word that ends a text, and stands before it

ONES = """zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen
    seventeen eighteen nineteen""".split()
TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
EINER = """null eins zwei drei vier fuenf sechs sieben acht neun zehn elf zwoelf dreizehn vierzehn fuenfzehn sechzehn
    siebzehn achtzehn neunzehn""".split()
ZEHNER = "zwanzig dreissig vierzig fuenfzig sechzig siebzig achtzig neunzig".split()
WORDS = ["<end>", *ONES, *TENS, "hundred", "thousand", "million",
         *EINER, *ZEHNER, "ein", "eine", "und", "hundert", "tausend", "millionen"]


def english(number):
    words = []
    for worth, name in (1000000, "million"), (1000, "thousand"), (100, "hundred"):
        if number >= worth:
            words += english(number // worth) + [name]
            number %= worth
    if number >= 20:
        words.append(TENS[number // 10 - 2])
        number %= 10
    return words + [ONES[number]] if number or not words else words


def german(number, one="eins"):
    """The ones come before the tens: 47 is sieben und vierzig. A 1 is eins, but ein hundert and eine million: `one`
    is its name where it ends the number. All in ASCII, and apart what German writes together."""
    words = []
    for worth, name, counted in (1000000, "millionen", "eine"), (1000, "tausend", "ein"), (100, "hundert", "ein"):
        if number >= worth:
            words += german(number // worth, counted) + [name]
            if words == ["eine", "millionen"]:
                words[1] = "million"
            number %= worth
    if number >= 20:
        if number % 10:
            words += ["ein" if number % 10 == 1 else EINER[number % 10], "und"]
        words.append(ZEHNER[number // 10 - 2])
    elif number == 1:
        words.append(one)
    elif number or not words:
        words.append(EINER[number])
    return words


SPELL = {ENGLISH: english, GERMAN: german}


def held_out(number):
    """One number in ten, by no rule that a network could see."""
    return zlib.crc32(b"%d" % number) % 10 == 0


def draw(rng, held):
    """A number of 1 to 9 digits, all lengths alike, with more zeros and ones than chance would give: a third is nearly
    round, like 5000012."""
    while True:
        choice = "1112345678923456789" + "0" * rng.choice((1, 4, 20))
        digits = [rng.choice(choice) for _ in range(rng.randint(1, DIGITS))]
        if len(digits) > 1 and digits[0] == "0":
            digits[0] = rng.choice(choice[:19])
        number = int("".join(digits))
        if held_out(number) == held:
            return number


def main():
    print("/* Made by words.py: what the ids of the source and of the target stand for. */")
    print("enum { ENGLISH = %d, GERMAN = %d, MOST_DIGITS = %d };" % (ENGLISH, GERMAN, DIGITS))
    print("enum { END = %d, WORDS = %d };" % (END, len(WORDS)))
    print("static const char *const WORD[WORDS] = {")
    for i in range(0, len(WORDS), 8):
        print("    " + " ".join('"%s",' % word for word in WORDS[i:i + 8]))
    print("};")


if __name__ == "__main__":
    main()
