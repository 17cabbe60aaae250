"""Dates as people write them: random ones in many forms, with typos, and the ISO form of each.

    forms.py [COUNT [SEED]]     prints lines `2026-11-20<TAB>fri 20th of novmber '26`

Where an order can be read in two ways, it is month/day/year between slashes and day.month.year or day-month-year
elsewhere; a number above 12 is a day wherever it stands. Two digits of a year are 1940 to 2039. A weekday says nothing:
it may be wrong."""
import datetime
import random
import sys

MONTHS = ("january february march april may june july august september october november december").split()
WEEKDAYS = "monday tuesday wednesday thursday friday saturday sunday".split()
FIRST, LAST = datetime.date(1900, 1, 1), datetime.date(2099, 12, 31)
LETTERS = "abcdefghijklmnopqrstuvwxyz"
MOST = 48  # characters that the model reads


def distance(a, b):
    """Edits from a to b: letters put in, left out, replaced, or swapped with the next."""
    rows = [list(range(len(b) + 1))]
    for i, x in enumerate(a):
        row = [i + 1]
        for j, y in enumerate(b):
            best = min(row[j] + 1, rows[-1][j + 1] + 1, rows[-1][j] + (x != y))
            if i and j and x == b[j - 1] and a[i - 1] == y:
                best = min(best, rows[-2][j - 1] + 1)
            row.append(best)
        rows.append(row)
    return rows[-1][-1]


def names(month):
    """A month's name and its short forms."""
    name = MONTHS[month]
    return [name, name[:3]] + (["sept"] if name == "september" else [])


def edits(word):
    """Every word one slip away."""
    cuts = [(word[:i], word[i:]) for i in range(len(word) + 1)]
    found = {a + b[1:] for a, b in cuts if b}
    found |= {a + b[1] + b[0] + b[2:] for a, b in cuts if len(b) > 1}
    found |= {a + c + b[1:] for a, b in cuts if b for c in LETTERS}
    found |= {a + b[:1] + b for a, b in cuts if b}  # a letter twice
    return sorted(found - {word})


def month_typos(month):
    """Slips in the long name that are nearer to it than to any other month's names."""
    others = [n for m in range(12) if m != month for n in names(m)]
    return [w for w in edits(MONTHS[month]) if len(w) > 3 and all(distance(w, n) > 1 for n in others)]


TYPOS = [month_typos(month) for month in range(12)]
DAY_TYPOS = [edits(name) for name in WEEKDAYS]


def ordinal(day):
    ending = "th" if 10 < day % 100 < 14 else {1: "st", 2: "nd", 3: "rd"}.get(day % 10, "th")
    return str(day) + ending


def month_name(rng, month):
    draw = rng.random()
    if draw < 0.2:
        return rng.choice(TYPOS[month])
    if draw < 0.6:
        return MONTHS[month]
    short = rng.choice(names(month)[1:])
    return short + ("." if rng.random() < 0.2 else "")


def weekday(rng, date):
    index = date.weekday() if rng.random() < 0.7 else rng.randrange(7)
    name = WEEKDAYS[index]
    if rng.random() < 0.5:
        name = name[:3] + ("." if rng.random() < 0.2 else "")
    elif rng.random() < 0.15:
        name = rng.choice(DAY_TYPOS[index])
    return name + rng.choice([" ", " ", ", ", ","])


def year_text(rng, date, bare=False):
    """With two digits for those of 1940 to 2039, with or without an apostrophe."""
    if 1940 <= date.year <= 2039 and rng.random() < 0.4:
        return rng.choice(["", "'"] if not bare else [""]) + "%02d" % (date.year % 100)
    return str(date.year)


def in_words(rng, date):
    month, year = month_name(rng, date.month - 1), year_text(rng, date)
    day = ordinal(date.day) if rng.random() < 0.5 else rng.choice(["%d", "%d", "%02d"]) % date.day
    the, of = rng.choice(["", "", "", "the "]), rng.choice([" ", " ", " ", " of "])
    gap = rng.choice([" ", " ", ", ", ","]) if not year.startswith("'") else rng.choice([" ", ", ", ""])
    form = rng.randrange(5)
    if form < 2:
        return the + day + of + month + gap + year
    if form == 2:
        return month + " " + the + day + gap + year
    if form == 3:
        between = rng.choice(["-", "/", ".", ""])
        return day.rstrip("stndrh") + between + month.rstrip(".") + between + year.lstrip("'")
    first = year if len(year) > 2 else "'" + year  # otherwise it could be the day
    return first + rng.choice([" ", ", "]) + month + " " + day


def in_numbers(rng, date):
    pad = rng.random() < 0.5
    day, month = (("%02d" if pad else "%d") % n for n in (date.day, date.month))
    form = rng.randrange(6)
    if form == 0:
        return date.isoformat()
    if form == 1:
        return date.strftime("%Y%m%d") if date.year > 999 and rng.random() < 0.4 else \
            rng.choice("/.").join([str(date.year), month, day])
    year = year_text(rng, date, bare=True)
    if form in (2, 3):
        first, second = (month, day) if date.day <= 12 or rng.random() < 0.8 else (day, month)
        return "/".join([first, second, year])
    between = rng.choice([".", ".", "-", " "])
    first, second = (day, month) if date.day <= 12 or rng.random() < 0.9 else (month, day)
    return between.join([first, second, year])


def written(rng, date):
    """One way to write it, in small letters."""
    while True:
        text = in_words(rng, date) if rng.random() < 0.6 else in_numbers(rng, date)
        if rng.random() < 0.25:
            text = weekday(rng, date) + text
        if rng.random() < 0.08:
            at = rng.randrange(len(text) + 1)
            text = text[:at] + (" " if at < len(text) and text[at] == " " else "") + text[at:]
        if rng.random() < 0.05:
            text = " " * rng.randrange(3) + text + rng.choice(["", " ", "."])
        if len(text) <= MOST:
            return text


WORDS = """a after all again ago and any at back bank be before big birthday book bread but by cat century christmas
clock cold come day days decade did do dog easter eight end evening ever far few first five for four from game good
great green half hello her here him his hour hours house how i if in is it its just know last later letter life light
like line little long lunch make man many me minute minutes moment money month months morning my name never new next
night nine no noon not nothing now number of old on once one open or other our out over part people place play point
red right river road room same say second see seven she ship short six small so some soon sound spring start story
street sun table ten test than that the their them then there they thing this three time to today tomorrow tree two
under until up very wall warm water way we week weeks what when where white why will winter with without word work world
year years yes yesterday you young""".split()


def nonsense(rng):
    """What is no date: words, letters, parts of dates, numbers that no calendar has."""
    form = rng.randrange(6)
    if form < 2:
        return " ".join(rng.choice(WORDS) for _ in range(rng.randint(1, 8)))
    if form == 2:
        words = ("".join(rng.choice(LETTERS) for _ in range(rng.randint(1, 9))) for _ in range(rng.randint(1, 5)))
        return " ".join(words)
    if form == 3:  # a day or a month or a year is missing
        month, day, year = month_name(rng, rng.randrange(12)), ordinal(rng.randint(1, 31)), str(rng.randint(1900, 2099))
        return rng.choice([month, day, year, month + " " + year, day + " " + month, rng.choice(WEEKDAYS)])
    if form == 4:
        between = rng.choice("/.- ")
        parts = [str(rng.randint(13, 99)), str(rng.randint(32, 99)), str(rng.randint(1900, 2099))]
        return between.join(parts[:rng.choice([2, 3, 3])])
    return "".join(rng.choice("0123456789" + "',-./ ") for _ in range(rng.randint(1, 14)))


def held_out(date):
    """A tenth of all days, which training never sees."""
    return date.toordinal() * 2654435761 % 4294967296 < 429496730


def draw(rng, held, no_date=0.0):
    """(text, ISO form) of a random day; half of them are of 1940 to 2039. In so many of the cases no date, and ""."""
    if rng.random() < no_date:
        return nonsense(rng)[:MOST], ""
    while True:
        first, last = (FIRST, LAST) if rng.random() < 0.5 else (datetime.date(1940, 1, 1), datetime.date(2039, 12, 31))
        date = datetime.date.fromordinal(rng.randint(first.toordinal(), last.toordinal()))
        if held_out(date) == held:
            return written(rng, date), date.isoformat()


def main():
    rng = random.Random(int(sys.argv[2]) if len(sys.argv) > 2 else 1)
    for _ in range(int(sys.argv[1]) if len(sys.argv) > 1 else 20):
        print("%s\t%s" % draw(rng, True)[::-1])


if __name__ == "__main__":
    main()
