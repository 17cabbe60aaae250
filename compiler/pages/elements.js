/* elements.js: the beginning of each page's script reads the page's data and defines how elements are made. */
"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const space = "http://www.w3.org/2000/svg";

function html(parent, name, text, attributes) {
    const made = document.createElement(name);
    for (const key in attributes) made.setAttribute(key, attributes[key]);
    if (text !== undefined) made.textContent = text;
    parent.append(made);
    return made;
}

function element(parent, name, attributes, text) {
    const made = document.createElementNS(space, name);
    for (const key in attributes) made.setAttribute(key, attributes[key]);
    if (text !== undefined) made.textContent = text;
    parent.append(made);
    return made;
}
