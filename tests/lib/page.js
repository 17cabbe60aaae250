/* page.js: what a reader could not read of a page, whatever it shows; for browser.py. */
"use strict";
const tests = {
    wrong: [],
    short: (e) => `${e.tagName} ${e.textContent.slice(0, 60)}`,

    /* Luminance and contrast as WCAG 2 defines them, of colours as getComputedStyle writes them. */
    luminance(colour) {
        const [r, g, b] = colour.match(/[\d.]+/g).map((part) => part / 255)
            .map((part) => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    },
    contrast(a, b) {
        const [low, high] = [tests.luminance(a), tests.luminance(b)].sort((x, y) => x - y);
        return (high + 0.05) / (low + 0.05);
    },

    /* Texts outside the window, that scroll sideways or are too pale; of an element's own text alone. */
    lookAtTexts() {
        const paper = getComputedStyle(document.body).backgroundColor;
        for (const e of document.querySelectorAll("body *:not(script, style, option, noscript, pre)")) {
            const own = [...e.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
            const box = e.getBoundingClientRect(), style = getComputedStyle(e);
            if (!own || !box.width || style.display === "none") continue;
            if (box.left < -0.5 || box.right > innerWidth + 0.5)
                tests.wrong.push(`outside: ${tests.short(e)}, ${box.left} to ${box.right}`);
            if (!e.ownerSVGElement && e.scrollWidth > e.clientWidth + 1 && style.display !== "inline" && e.clientWidth)
                tests.wrong.push("wider than its place: " + tests.short(e));
            if (e.ownerSVGElement ? e.classList.contains("inside") : e.id === "hint") continue;
            const ratio = tests.contrast(e.ownerSVGElement ? style.fill : style.color, paper);
            if (ratio < 4.5) tests.wrong.push(`contrast ${ratio.toFixed(2)}: ${tests.short(e)}`);
            if (parseFloat(style.fontSize) < 11) tests.wrong.push(`${style.fontSize}: ${tests.short(e)}`);
        }
        if (document.documentElement.scrollWidth > innerWidth)
            tests.wrong.push(`the page is ${document.documentElement.scrollWidth} wide`);
        for (const svg of document.querySelectorAll("svg")) {
            const box = svg.getBoundingClientRect();
            if (svg.viewBox.baseVal && svg.viewBox.baseVal.width && box.width < svg.viewBox.baseVal.width - 1)
                tests.wrong.push(`a picture shrunk to ${box.width}`);
        }
    },

    leave(found) {
        const made = document.createElement("pre");
        made.id = "found";
        made.textContent = JSON.stringify({wrong: tests.wrong, width: innerWidth, dark:
            matchMedia("(prefers-color-scheme: dark)").matches, ...found});
        parent.document.body.append(made);
    },
};
