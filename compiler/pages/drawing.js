/* drawing.js: the functions that the pages with pictures share. Each of these pages defines drawPage, which draws its
 * pictures again. */
const LETTER = 6.7; /* pixels of a letter of .name */
const MOST_WIDTH = 1180, LEAST_WIDTH = 280, NARROW = 800;
let WIDTH, narrow; /* the pictures' width in pixels; whether names stand below or above their marks, not next to them */
const GREY = "var(--grey)", PAPER = "var(--paper)", GROUND = "var(--ground)", RULE = "var(--rule)";

/* ---- numbers, as the text of the command prints them; durations of `attnc explain` have a digit less */

function amount(value, unit) {
    const prefixes = ["", "k", "M", "G", "T"];
    let p = 0;
    while (value >= 1000 && p < 4) { value /= 1000; p++; }
    return `${value.toFixed(p ? 2 : 0)} ${prefixes[p]}${unit}`;
}

function duration(seconds) {
    const [factor, unit] = seconds >= 1 ? [1, "s"] : seconds >= 1e-3 ? [1e3, "ms"] : seconds >= 1e-6 ? [1e6, "us"]
        : [1e9, "ns"];
    return `${three(seconds * factor)} ${unit}`;
}

const three = (value) => String(Number(value.toPrecision(3)));
const cut = (text, most) => text.length > most ? text.slice(0, most - 1) + "\u2026" : text;

/* ---- pictures */

/* Empties these parts of the page, and takes the width of the pictures. */
function beginPage(...ids) {
    for (const id of ids) document.getElementById(id).replaceChildren();
    WIDTH = Math.max(LEAST_WIDTH, Math.min(MOST_WIDTH, document.getElementById(ids[0]).clientWidth));
    narrow = WIDTH < NARROW;
}

const picture = (id, height, title) => element(document.getElementById(id), "svg", {
    viewBox: `0 0 ${WIDTH} ${Math.ceil(height)}`, width: WIDTH, height: Math.ceil(height), role: "application",
    tabindex: 0, "aria-label": `${title}: the arrow keys go from one mark to the next`});
const line = (svg, x1, y1, x2, y2, colour, more) => element(svg, "line", {x1, y1, x2, y2, stroke: colour, ...more});
const rectangle = (svg, x, y, width, height, fill, hint) => element(svg, "rect", {
    x, y, width, height, fill, ...(hint ? {"data-hint": hint} : {})});
const letters = (svg, x, y, text, more) => element(svg, "text", {x, y, ...more}, text);
const note = (id, text) => html(document.getElementById(id), "p", text);

/* Adds a square of that colour and, after it, a text. */
function addKey(parent, text, colour) {
    html(parent, "i", "", {style: `background: ${colour}`});
    parent.append(text);
}

function legend(id, entries) {
    const made = html(document.getElementById(id), "div", undefined, {"class": "legend"});
    for (const [name, colour] of entries) addKey(html(made, "span"), name, colour);
}

/* ---- layers */

/* Returns [stack or undefined, number] for a step of a layer, and [] for another step. */
const layerOf = (step) => (/^(?:(.*)_)?layer(\d+)$/.exec(step.layer || "") || []).slice(1);

/* Returns the runs of steps that belong to the same layer, or to no layer. */
function sectionsOf(steps) {
    const sections = [];
    steps.forEach((step, index) => {
        const last = sections[sections.length - 1];
        if (last && last.layer === step.layer) { last.steps.push(step); return; }
        const [stack, number] = layerOf(step);
        sections.push({layer: step.layer, first: index, steps: [step], stack, number});
    });
    return sections;
}

/* Draws a line where each section begins, and the numbers and stacks of the layers. Step i begins at x(i), and `below`
 * says how far below the bottom the lines, the numbers and the names of the stacks end. */
function drawLayers(svg, sections, x, top, bottom, below) {
    const runs = [];
    sections.forEach((section, i) => {
        const from = x(section.first), to = x(section.first + section.steps.length);
        line(svg, from, top, from, bottom + below.lines, "var(--border)");
        if (section.number === undefined) return;
        const run = runs[runs.length - 1];
        if (run && run.stack === section.stack && run.next === i) Object.assign(run, {to, next: i + 1});
        else runs.push({stack: section.stack, from, to, next: i + 1});
        const every = Math.ceil(22 / (to - from));
        if (section.number % every === 0)
            letters(svg, (from + to) / 2, bottom + below.numbers, section.number, {"text-anchor": "middle"});
    });
    for (const run of runs)
        letters(svg, (run.from + run.to) / 2, bottom + below.stacks, `${run.stack ? run.stack + " " : ""}layers`,
                {"text-anchor": "middle"});
}

/* ---- hints: by pointer, by tap, and by keys */

const hint = document.getElementById("hint");

function showHint(at, x, y) {
    hint.style.display = at ? "block" : "none";
    if (!at) return;
    if (hint.textContent !== at.getAttribute("data-hint")) hint.textContent = at.getAttribute("data-hint");
    hint.style.left = Math.max(4, Math.min(x + 14, innerWidth - hint.offsetWidth - 8)) + "px";
    hint.style.top = Math.max(4, Math.min(y + 14, innerHeight - hint.offsetHeight - 8)) + "px";
}

for (const type of ["pointermove", "pointerdown"])
    document.addEventListener(type, (event) =>
        showHint(event.target.closest && event.target.closest("[data-hint]"), event.clientX, event.clientY));

const unmark = () => { for (const old of document.querySelectorAll(".at")) old.classList.remove("at"); };

document.addEventListener("keydown", (event) => {
    const picture = event.target.closest && event.target.closest("svg"), all = picture
        ? [...picture.querySelectorAll("[data-hint]")] : [], before = all.findIndex((e) => e.classList.contains("at"));
    const to = {ArrowRight: before + 1, ArrowDown: before + 1, ArrowLeft: Math.max(0, before - 1),
                ArrowUp: Math.max(0, before - 1), Home: 0, End: all.length - 1}[event.key];
    if (event.key === "Escape") showHint(null);
    if (to === undefined || !all.length || event.altKey || event.metaKey || event.ctrlKey) return;
    event.preventDefault();
    unmark();
    const mark = all[Math.min(to, all.length - 1)];
    mark.classList.add("at");
    mark.scrollIntoView({block: "nearest"});
    const box = mark.getBoundingClientRect();
    showHint(mark, box.right - 10, box.bottom - 10);
});
document.addEventListener("focusout", () => {
    unmark();
    showHint(null);
});
let drawn = innerWidth;
addEventListener("resize", () => {
    if (innerWidth === drawn) return;
    drawn = innerWidth;
    drawPage();
});
