/* look.js: what the page of attnc explain drew, and what of it a reader could not read; for run.py. */
{
    const turned = (e) => /rotate/.test(e.getAttribute("transform") || ""), {wrong, short} = tests;
    const count = (selector) => document.querySelectorAll(selector).length;
    tests.lookAtTexts();
    const texts = [...document.querySelectorAll("svg text, th, td, h1, h2, p, .facts div, .legend span")]
        .filter((e) => e.textContent && e.getBoundingClientRect().width)
        .map((e) => ({e, box: e.getBoundingClientRect()}));
    for (const text of texts) {
        const around = text.e.ownerSVGElement ? text.e.ownerSVGElement.getBoundingClientRect()
            : {left: 0, top: -Infinity, right: innerWidth, bottom: Infinity};
        if (text.box.left < around.left - 1 || text.box.right > around.right + 1 || text.box.top < around.top - 1 ||
            text.box.bottom > around.bottom + 1)
            wrong.push("outside: " + short(text.e));
        if (/NaN|undefined|Infinity|null/.test(text.e.textContent)) wrong.push("no number: " + short(text.e));
    }
    texts.forEach((a, i) => texts.slice(0, i).forEach((b) => {
        if (turned(a.e) || turned(b.e) || a.e.contains(b.e) || b.e.contains(a.e)) return;
        const width = Math.min(a.box.right, b.box.right) - Math.max(a.box.left, b.box.left);
        const height = Math.min(a.box.bottom, b.box.bottom) - Math.max(a.box.top, b.box.top);
        if (width > 0.5 && height > 3) wrong.push(`overlap: ${short(a.e)} | ${short(b.e)}`);
    }));
    for (const e of document.querySelectorAll("svg *"))
        for (const {name, value} of e.attributes)
            if (/NaN|undefined|Infinity/.test(value)) wrong.push(`${e.tagName} ${name}="${value}"`);
    const grey = getComputedStyle(document.documentElement).getPropertyValue("--grey").trim();
    for (const colour of [...Object.values(kindColours), grey]) {
        const rgb = `rgb(${colour.slice(1).match(/../g).map((digits) => parseInt(digits, 16))})`;
        if (tests.contrast(rgb, "rgb(255, 255, 255)") < 4.5) wrong.push(`white letters on ${colour}`);
    }
    const labels = [...groups, ...sections].map((one) => one.label);
    const twice = labels.filter((label, i) => labels.indexOf(label) < i);
    if (twice.length) wrong.push("told apart by nothing: " + twice.join("; "));

    const mark = document.querySelector("#roofline circle"), hintOf = (e) => e.getAttribute("data-hint");
    const hinted = (e, how) => {
        const box = hint.getBoundingClientRect();
        if (hint.style.display !== "block" || hint.textContent !== hintOf(e)) wrong.push("no hint by " + how);
        if (box.left < 0 || box.right > innerWidth) wrong.push(`the hint by ${how} from ${box.left} to ${box.right}`);
    };
    for (const type of ["pointermove", "pointerdown"]) {
        mark.dispatchEvent(new PointerEvent(type, {bubbles: true, clientX: innerWidth - 5, clientY: 5}));
        hinted(mark, type);
        document.body.dispatchEvent(new PointerEvent(type, {bubbles: true}));
        if (hint.style.display !== "none") wrong.push("the hint stays");
    }
    for (const svg of document.querySelectorAll("svg")) {
        const all = [...svg.querySelectorAll("[data-hint]")];
        const press = (key) => svg.dispatchEvent(new KeyboardEvent("keydown", {key, bubbles: true, cancelable: true}));
        if (svg.tabIndex !== 0) wrong.push("no key reaches " + svg.getAttribute("aria-label"));
        svg.focus();
        const last = all.length - 1;
        for (const [key, at] of [["ArrowRight", 0], ["ArrowDown", 1], ["End", last], ["ArrowRight", last],
                                 ["ArrowLeft", last - 1], ["Home", 0], ["ArrowUp", 0]]) {
            press(key);
            hinted(all[Math.max(0, Math.min(at, all.length - 1))], key);
        }
        press("Escape");
        if (hint.style.display !== "none") wrong.push("Escape leaves the hint");
    }
    tests.leave({marks: count("#roofline circle"), time: count("#time rect"), memory: count("#memory rect"),
                 masks: count("#masks rect"),
                 numbers: [...document.querySelectorAll("#roofline td.index")].map((e) => e.textContent),
                 counted: groups.filter((g) => g.flops).length, narrow, text: document.body.innerText});
}
