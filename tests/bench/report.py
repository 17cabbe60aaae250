"""The report of a run: text, Markdown, JSON and a chart."""
import json
import os

import chart


def of_result(result):
    """A dictionary of a row's figures."""
    row = result.row
    contestants = []
    own = result.own()
    for entry in row.entries:
        name = entry.name
        if not entry.timed:
            continue
        told = {"name": name, "ours": entry.ours, "version": result.versions.get(name, ""),
                "note": result.notes.get(name, "")}
        if name in result.times:
            seconds = result.median(name)
            told.update(seconds=seconds, rounds=result.times[name], figure=row.shown(seconds),
                        ratio=result.ratio(own, name), difference=result.differences.get(name),
                        bound=row.bound if entry.bound is None else entry.bound,
                        peak=result.share(name), read=result.share(name, "bytes"), errors=result.errors.get(name))
        told["failure"] = result.failures.get(name)
        contestants.append(told)
    contestants += [{"name": name, "ours": False, "failure": why} for name, why in row.missing.items()]
    bounds = {e.name: row.bound if e.bound is None else e.bound for e in row.entries}
    wrong = ["%s differs by %.3g, more than %.3g" % (n, result.differences[n], bounds[n]) for n in result.wrong]
    wrong += ["%s did not run: %s" % (e.name, result.failures.get(e.name)) for e in row.entries
              if e.ours and e.timed and e.name not in result.times]
    return {"name": row.name, "title": row.title, "unit": row.unit, "threads": row.threads, "bound": row.bound,
            "unit_of": row.unit_of, "note": row.note, "contestants": contestants,
            "bars": [bar.judge(result) for bar in row.bars],
            "own": own, "best_peer": result.best_peer(), "ratio": result.ratio(own, result.best_peer()),
            "idle": result.idle, "strangers": result.strangers, "wrong": wrong, "not_run": None}


def not_run(name, why, wrong=False):
    return {"name": name, "title": name, "unit": "", "contestants": [], "bars": [], "wrong": [why] if wrong else [],
            "not_run": why, "ratio": None, "note": "", "own": None, "best_peer": None}


def number(value):
    """Three or four figures, without an exponent."""
    if value is None:
        return "-"
    if value and abs(value) < 0.1:
        return "%.5f" % value
    return "%.0f" % value if value >= 1000 else "%.*f" % (max(0, 3 - len("%d" % abs(value))), value)


def percent(value):
    return "-" if value is None else "%.1f %%" % (100 * value)


def bar_text(bar):
    shown = percent if bar.get("percent") else number
    if bar["value"] is None:
        return "%s: not measured, %s %s" % (bar["bar"], "<=" if bar["most"] else ">=", shown(bar["needed"]))
    return "%s: %s %s %s, %s" % (bar["bar"], shown(bar["value"]), "<=" if bar["most"] else ">=", shown(bar["needed"]),
                                 bar["state"])


def small(value):
    """Three figures."""
    return "%.0e" % value if value and abs(value) < 5e-5 else "%.*f" % (5 if abs(value) < 0.1 else 3, value)


def error_text(c):
    if c.get("errors"):
        return ", ".join("%s %s" % (name, small(value)) for name, value in c["errors"].items())
    if c.get("difference") is None:
        return ""
    return "differs by %.1e, bound %.0e" % (c["difference"], c["bound"])


def cells(row):
    """Columns of the contestants: name, figure, ours / theirs, share, difference."""
    table = []
    for c in row["contestants"]:
        if c.get("failure") or "figure" not in c:
            table.append((c["name"], "not run: %s" % (c.get("failure") or "?"), "", "", ""))
            continue
        share = c.get("peak") if c.get("peak") is not None else c.get("read")
        unit = row.get("unit_of")
        what = " of reads" if c.get("peak") is None else " of %s peak" % unit if unit else " of peak"
        table.append((c["name"], "%s %s" % (number(c["figure"]), c.get("unit", row["unit"])),
                      "" if c["name"] == row["own"] or c.get("ratio") is None else "%s x" % number(c["ratio"]),
                      "" if share is None else percent(share) + what,
                      error_text(c)))
    return table


def disturbances(row):
    """What makes a row's figures doubtful."""
    out = []
    if row.get("strangers", 0) > 0.05:
        out.append("other programs took %.0f %% of a core meanwhile" % (100 * row["strangers"]))
    if row.get("idle", 0) > 0.05:
        out.append("idle contestants took up to %.0f %% of a core in another's turn" % (100 * row["idle"]))
    return out


def row_text(row):
    if row["not_run"]:
        return "%s: not run: %s\n" % (row["name"], row["not_run"])
    lines = ["%s: %s%s" % (row["name"], row["title"], " (%s)" % row["note"] if row["note"] else "")]
    table = cells(row)
    widths = [max([len(line[i]) for line in table if not line[1].startswith("not run")] or [0]) for i in range(5)]
    for line in table:
        lines.append("  %-20s %s" % (line[0], "  ".join(cell.rjust(w) for cell, w in zip(line[1:], widths[1:]))
                                     if not line[1].startswith("not run") else line[1]))
    lines += ["  disturbed: " + text for text in disturbances(row)]
    lines += ["  bar: " + bar_text(bar) for bar in row["bars"]]
    lines += ["  WRONG: " + text for text in row["wrong"]]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def collect(described, meter, args, rows):
    versions = {}
    for row in rows:
        for c in row["contestants"]:
            if c.get("version") and not c["ours"]:
                versions[c["name"].split()[0]] = c["version"]
    return {"machine": described, "target": meter.target, "rounds": args.rounds, "seconds": args.seconds,
            "versions": versions, "peak_gflops": [p / 1e9 for p in meter.peaks],
            "read_gb_s": [r / 1e9 for r in meter.reads], "rows": rows}


def middle(values):
    values = sorted(values)
    return values[len(values) // 2]


def head_text(whole):
    peaks, reads = whole["peak_gflops"], whole["read_gb_s"]
    return "%s; peers: %s; one core, measured %d times in this run: %.1f GFLOP/s (%s; %.1f to %.1f), %.1f GB/s read " \
        "(%.1f to %.1f)" % (
            whole["machine"], ", ".join("%s %s" % pair for pair in sorted(whole["versions"].items())) or "none",
            len(peaks), middle(peaks), whole["target"], min(peaks), max(peaks), middle(reads), min(reads), max(reads))


def summary(whole):
    lines = []
    for row in whole["rows"]:
        if row["not_run"]:
            lines.append((row["name"], "", "", "not run: " + row["not_run"]))
            continue
        own = next((c for c in row["contestants"] if c["name"] == row["own"]), None)
        peer = next((c for c in row["contestants"] if c["name"] == row["best_peer"]), None)
        lines.append((row["name"],
                      "%s %s" % (number(own["figure"]), row["unit"]) if own and "figure" in own else "-",
                      "%s %s, %s" % (number(peer["figure"]), row["unit"], peer["name"]) if peer else "-",
                      "; ".join(row["wrong"] + disturbances(row) + [bar_text(bar) for bar in row["bars"]])))
    return lines


def summary_text(whole):
    table = [("row", "attnc", "best peer", "bars")] + summary(whole)
    widths = [max(len(line[i]) for line in table) for i in range(3)]
    out = [head_text(whole), ""]
    for line in table:
        out.append("  ".join([line[0].ljust(widths[0]), line[1].rjust(widths[1]), line[2].rjust(widths[2]), line[3]]))
    bars = [bar for row in whole["rows"] for bar in row["bars"]]
    out.append("%d of %d bars reached, %d rows wrong" % (sum(b["state"] == "reached" for b in bars), len(bars),
                                                         sum(bool(row["wrong"]) for row in whole["rows"])))
    return "\n".join(out)


def markdown(whole):
    out = [head_text(whole), "", "![ratios](ratios.svg)", "", "| row | attnc | best peer | bars |", "|---|---|---|---|"]
    out += ["| %s |" % " | ".join(cell.replace("|", "/") for cell in line) for line in summary(whole)]
    out += ["", "`x` is how many times faster attnc is, the median of the ratios of each round; `differs by` is "
            "max abs(a - b) / (1 + max abs(b)), b being ours, or the count of differing tokens.", ""]
    for row in whole["rows"]:
        if row["not_run"]:
            continue
        out += ["## %s: %s" % (row["name"], row["title"]), ""]
        out += [row["note"], ""] if row["note"] else []
        out += ["| | figure | attnc is faster by | share | check |", "|---|---|---|---|---|"]
        out += ["| %s |" % " | ".join(cell.replace("|", "/") for cell in line) for line in cells(row)]
        out += [""] + ["- disturbed: " + d for d in disturbances(row)]
        out += ["- " + bar_text(bar) for bar in row["bars"]] + ["- WRONG: " + w for w in row["wrong"]] + [""]
    return "\n".join(out)


def write(whole, folder, also=None):
    texts = {"report.json": json.dumps(whole, indent=1), "report.md": markdown(whole),
             "ratios.svg": chart.ratios(whole["rows"])}
    for name, text in texts.items():
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(text + "\n")
    if also:
        with open(also, "w", encoding="utf-8") as file:
            file.write(texts["report.json"] + "\n")
