/* Made by words.py: what the ids of the source and of the target stand for. */
enum { ENGLISH = 10, GERMAN = 11, MOST_DIGITS = 9 };
enum { END = 0, WORDS = 66 };
static const char *const WORD[WORDS] = {
    "<end>", "zero", "one", "two", "three", "four", "five", "six",
    "seven", "eight", "nine", "ten", "eleven", "twelve", "thirteen", "fourteen",
    "fifteen", "sixteen", "seventeen", "eighteen", "nineteen", "twenty", "thirty", "forty",
    "fifty", "sixty", "seventy", "eighty", "ninety", "hundred", "thousand", "million",
    "null", "eins", "zwei", "drei", "vier", "fuenf", "sechs", "sieben",
    "acht", "neun", "zehn", "elf", "zwoelf", "dreizehn", "vierzehn", "fuenfzehn",
    "sechzehn", "siebzehn", "achtzehn", "neunzehn", "zwanzig", "dreissig", "vierzig", "fuenfzig",
    "sechzig", "siebzig", "achtzig", "neunzig", "ein", "eine", "und", "hundert",
    "tausend", "millionen",
};
