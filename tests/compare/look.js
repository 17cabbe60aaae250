/* look.js: what the page of attnc compare drew, and what of it a reader could not read; for run.py. */
{
    const {wrong, short} = tests, count = (selector) => document.querySelectorAll(selector).length;
    tests.lookAtTexts();
    const texts = [...document.querySelectorAll("svg text, th, td, h1, h2, p, .legend span")]
        .filter((e) => e.textContent && e.getBoundingClientRect().width)
        .map((e) => ({e, box: e.getBoundingClientRect()}));
    for (const {e, box} of texts) {
        const around = e.ownerSVGElement ? e.ownerSVGElement.getBoundingClientRect()
            : {left: 0, top: -Infinity, right: innerWidth, bottom: Infinity};
        if (box.left < around.left - 1 || box.right > around.right + 1 || box.top < around.top - 1 ||
            box.bottom > around.bottom + 1)
            wrong.push("outside: " + short(e));
        if (/NaN|undefined|Infinity|null/.test(e.textContent)) wrong.push("no number: " + short(e));
    }
    texts.forEach((a, i) => texts.slice(0, i).forEach((b) => {
        if (a.e.contains(b.e) || b.e.contains(a.e)) return;
        const width = Math.min(a.box.right, b.box.right) - Math.max(a.box.left, b.box.left);
        const height = Math.min(a.box.bottom, b.box.bottom) - Math.max(a.box.top, b.box.top);
        if (width > 0.5 && height > 3) wrong.push(`overlap: ${short(a.e)} | ${short(b.e)}`);
    }));
    for (const e of document.querySelectorAll("svg *"))
        for (const {name, value} of e.attributes)
            if (/NaN|undefined|Infinity/.test(value)) wrong.push(`${e.tagName} ${name}="${value}"`);
    for (const svg of document.querySelectorAll("svg")) {
        const all = [...svg.querySelectorAll("[data-hint]")];
        svg.focus();
        svg.dispatchEvent(new KeyboardEvent("keydown", {key: "End", bubbles: true, cancelable: true}));
        const last = all[all.length - 1], box = hint.getBoundingClientRect();
        if (hint.style.display !== "block" || hint.textContent !== last.getAttribute("data-hint"))
            wrong.push("no hint in " + svg.getAttribute("aria-label"));
        if (box.left < 0 || box.right > innerWidth) wrong.push(`a hint from ${box.left} to ${box.right}`);
        svg.dispatchEvent(new KeyboardEvent("keydown", {key: "Escape", bubbles: true, cancelable: true}));
        if (hint.style.display !== "none") wrong.push("Escape leaves the hint");
    }
    tests.leave({lines: count("#steps polyline"), marks: count("#steps circle"), bars: count("#bytes rect, #time rect"),
                 steps: data.precisions.reduce((n, one) => n + one.steps.length, 0), text: document.body.innerText});
}
