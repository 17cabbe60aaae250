/* look.js: what a page drew, and what of it a reader could not read: into a <pre id="found">, for run.py. */
"use strict";
{
    const wrong = [], turned = (e) => /rotate/.test(e.getAttribute("transform") || "");
    const count = (selector) => document.querySelectorAll(selector).length;
    const texts = [...document.querySelectorAll("svg text, th, td, h1, h2, p, .facts div, .legend span")]
        .filter((e) => e.textContent).map((e) => ({e, box: e.getBoundingClientRect()}));
    const short = (text) => text.e.textContent.slice(0, 60);
    for (const text of texts) {
        const around = text.e.ownerSVGElement ? text.e.ownerSVGElement.getBoundingClientRect()
            : {left: 0, top: 0, right: innerWidth, bottom: Infinity};
        if (text.box.left < around.left - 1 || text.box.right > around.right + 1 || text.box.top < around.top - 1 ||
            text.box.bottom > around.bottom + 1)
            wrong.push("outside: " + short(text));
        if (/NaN|undefined|Infinity|null/.test(text.e.textContent)) wrong.push("no number: " + short(text));
    }
    texts.forEach((a, i) => texts.slice(0, i).forEach((b) => {
        if (turned(a.e) || turned(b.e) || a.e.contains(b.e) || b.e.contains(a.e)) return;
        const width = Math.min(a.box.right, b.box.right) - Math.max(a.box.left, b.box.left);
        const height = Math.min(a.box.bottom, b.box.bottom) - Math.max(a.box.top, b.box.top);
        if (width > 0.5 && height > 3) wrong.push(`overlap: ${short(a)} | ${short(b)}`);
    }));
    for (const e of document.querySelectorAll("svg *"))
        for (const {name, value} of e.attributes)
            if (/NaN|undefined|Infinity/.test(value)) wrong.push(`${e.tagName} ${name}="${value}"`);
    if (document.documentElement.scrollWidth > innerWidth) wrong.push("wider than the window");
    const mark = document.querySelector("#roofline circle"), hint = document.getElementById("hint");
    mark.dispatchEvent(new PointerEvent("pointermove", {bubbles: true, clientX: 5, clientY: 5}));
    if (hint.style.display !== "block" || hint.textContent !== mark.getAttribute("data-hint")) wrong.push("no hint");
    const found = document.createElement("pre");
    found.id = "found";
    found.textContent = JSON.stringify({wrong, marks: count("#roofline circle"), time: count("#time rect"),
                                        memory: count("#memory rect")});
    document.body.append(found);
}
