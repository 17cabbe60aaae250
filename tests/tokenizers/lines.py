"""Texts to try tokenizers on: the same on every machine and version of Python, since they are drawn by random() alone
and from Unicode 3.2's table, which Python keeps, and ranges that have long been whole."""
import random
from unicodedata import ucd_3_2_0

WORDS = """the quick brown fox jumps over lazy dog tokenization unbelievable attention transformers representation
embedding sentence's don't we'll I'M state-of-the-art e.g. U.S.A. 3.14 1,000 2024-01-31 #hashtag user@example.com
https://example.org/a?b=c%20d naïve café Übergröße Ångström ČEŠTINA Łódź İstanbul ılık GROẞ ﬁne Đại_học tiếng Việt
ΣΊΣΥΦΟΣ Ὀδυσσεύς ΑΣ Москва Ёлка й Ў Київ العربية مُحَمَّد עִבְרִית हिन्दी क़लम தமிழ் ไทย ภาษา 한국어 각 ひらがな ガギグ ｶﾞ 東京 北京市
日本語テキスト 㐀 豈 龍 𠀀 𪜀 👍🏽 👩‍👩‍👧 🇫🇷 ❤️ 1️⃣ № ™ ½ Å K Ω ǆ ǅ Ǆ x² H₂O ①②③ Ⅳ ㎏ ﷺ ﬀ ŀ ˈpronounced if(x){return y;} a_b __init__
Once upon a time there was little girl named Lily she loved play with her toys said big red ball happy very""".split()
RANGES = [
    (0x20, 0x7E), (0xA0, 0xFF), (0x100, 0x24F), (0x300, 0x36F), (0x370, 0x3FF), (0x400, 0x52F), (0x590, 0x5FF),
    (0x600, 0x6FF), (0x900, 0x97F), (0xE00, 0xE7F), (0x1100, 0x11FF), (0x1E00, 0x1FFF), (0x2000, 0x206F),
    (0x20A0, 0x214F), (0x2E80, 0x2FDF), (0x3000, 0x30FF), (0x4E00, 0x9FA5), (0xAC00, 0xD7A3), (0xF900, 0xFAFF),
    (0xFE00, 0xFFFF), (0x1D100, 0x1D1FF), (0x20000, 0x2A6D6), (0x2F800, 0x2FA1D), (0xE0000, 0xE007F), (0, 0xFFFF),
]
EMOJI = [(0x1F300, 0x1F320), (0x1F400, 0x1F43E), (0x1F440, 0x1F4F7), (0x1F601, 0x1F640), (0x1F680, 0x1F6C5)]
CONTROLS = "\0\x01\t\n\v\f\r\x1b\x1c\x7f\x85\xa0\xad\u200b\u200c\u200d\u2028\u2029\ufeff\ufffd\ue000\u2581\r\n"
MARKS = "\u0300\u0301\u0308\u0316\u0323\u0327\u0334\u0345\u302e\u0e31\u064b\U0001d165\U0001d16d"
BROKEN = [b"\xff", b"\x80", b"\xc3", b"\xc0\xaf", b"\xe2\x82", b"\xed\xa0\x80", b"\xf0\x9f\x98", b"\xf4\x90\x80\x80"]
SPELLED = ["[SEP]", "[MASK]", "[sep]", "[CLS", "<s>", "</s>", "<|endoftext|>", "<unk>", "<extra_id_0>", "<0x41>",
           "##ing", "[[PAD]]", "<|im_start|>", " <mask> ", "<mask>x"]


class Draw:
    def __init__(self, seed):
        self.random = random.Random(seed).random

    def below(self, count):
        return int(self.random() * count)

    def one(self, of):
        return of[self.below(len(of))]

    def char(self, low, high):
        for _ in range(50):
            char = chr(low + self.below(high - low + 1))
            if ucd_3_2_0.category(char) not in ("Cn", "Cs"):
                return char
        return "?"

    def part(self):
        kind = self.below(15)
        if kind < 5:
            return self.one(WORDS)
        if kind == 5:
            return self.one(WORDS).upper()
        if kind < 9:
            low, high = self.one(RANGES)
            return "".join(self.char(low, high) for _ in range(1 + self.below(8)))
        if kind == 9:
            return "".join(self.one("aeiouncAEIO가中") + "".join(self.one(MARKS) for _ in range(self.below(5)))
                           for _ in range(3))
        if kind == 10:
            return self.one(CONTROLS)
        if kind == 11:
            return self.one(SPELLED)
        if kind == 12:
            return self.one("ab0") * (1 + self.below(3)) + self.one(["\u0301", "", "-", "  "]) + self.one("xy7")
        if kind == 13:
            low, high = self.one(EMOJI)
            return chr(low + self.below(high - low + 1)) + self.one(["", "\ufe0f", "\u200d", "\U0001f3fd"])
        if self.random() < 0.2:
            return self.one(["a", "é", "가", "я", "🙂", " ", "\n"]) * self.one([33, 34, 49, 50, 51, 99, 100, 101])
        return "…"

    def line(self):
        """The bytes of one text; now and then some of them are broken UTF-8."""
        line = b""
        for _ in range(self.one([0, 1, 2, 3, 5, 8, 13])):
            line += self.part().encode("utf-8", "replace")
            line += self.one([b" ", b" ", b" ", b"", b"", b"  ", b"\t", b", ", b"\xe3\x80\x80", b"\n"])
            if self.random() < 0.04:
                line += self.one(BROKEN)
        return line


def lines(count=10000, seed=1):
    draw = Draw(seed)
    return [draw.line() for _ in range(count)]


def decoded(line):
    return line.decode("utf-8", "replace")
