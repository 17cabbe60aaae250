/* look.js: what the page of attnc map drew, and what its keys and taps say; for run.py. */
{
    const wait = (time) => new Promise((done) => setTimeout(done, time));
    const grids = () => [...document.querySelectorAll(".grid")];
    const bytesOf = (canvas, x, y) =>
        [...canvas.getContext("2d").getImageData(Math.round(x), Math.round(y), 1, 1).data];

    const press = (box, key, more) => box.dispatchEvent(new KeyboardEvent("keydown", {key, bubbles: true,
                                                                                      cancelable: true, ...more}));
    const say = document.getElementById("readout"), can = typeof DecompressionStream !== "undefined";

    /* Texts of a map that cover each other, of all maps as they are drawn now. */
    function covered() {
        const kind = CanvasRenderingContext2D.prototype, draws = kind.fillText, boxes = new Map(), found = [];
        kind.fillText = function (text, x, y, most) {
            const wide = Math.min(this.measureText(text).width, most ?? Infinity), at = this.getTransform();
            const from = {left: x, center: x - wide / 2, right: x - wide}[this.textAlign];
            const ends = [[from, y - 5], [from + wide, y + 5]].map(([a, b]) => at.transformPoint({x: a, y: b}));
            if (!boxes.has(this.canvas)) boxes.set(this.canvas, []);
            const [across, down] = [ends.map((end) => end.x), ends.map((end) => end.y)];
            boxes.get(this.canvas).push({text, left: Math.min(...across), right: Math.max(...across),
                                         top: Math.min(...down), bottom: Math.max(...down)});
        };
        redraw();
        kind.fillText = draws;
        for (const all of boxes.values())
            all.forEach((a, i) => all.slice(i + 1).forEach((b) => {
                if (a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom)
                    found.push(`${a.text} and ${b.text}`);
            }));
        return {count: [...boxes.values()].flat().length, found};
    }

    const coloured = (canvas) => {
        const all = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data, ramp = rampAt(1);
        let strongest = 0;
        for (let i = 0; i < all.length; i += 4)
            strongest += ramp.every((part, k) => part === all[i + k]);
        return [canvas.clientWidth, canvas.clientHeight, strongest];
    };

    /* The overview: its pictures, the choices of the way to a layer, and where the window is after each. */
    async function travel() {
        const choice = document.querySelector("#jump select"), cells = [...document.querySelectorAll(".cell")];
        const found = {cells: cells.map((cell) => [cell.getAttribute("aria-label"), ...coloured(cell.firstChild)]),
                       hidden: document.getElementById("overview").hidden, choices: [], tops: [], heads: []};
        for (let i = 0; i < choice.options.length; i++) {
            choice.selectedIndex = i;
            choice.dispatchEvent(new Event("change"));
            await wait(50);
            const place = i === 0 && !found.hidden ? document.getElementById("overview")
                : data.groups[i - !found.hidden].heading;
            found.choices.push(choice.options[i].textContent);
            const ends = document.documentElement.scrollHeight - innerHeight - scrollY < 2;
            found.tops.push([place.getBoundingClientRect().top, choice.selectedIndex, ends]);
        }
        for (const cell of cells) {
            cell.click();
            found.heads.push(document.activeElement.getAttribute("aria-label"));
        }
        return found;
    }

    async function look() {
        const found = {said: [], maps: [], hidden: [], pixels: []};
        found.symbols = data.axes.map((axis) => axis.symbols.map((s) => s.name));
        const waiting = () => [...grids(), ...document.querySelectorAll(".small, .cell")]
            .filter((e) => !e.dataset.state);
        for (let i = 0; i < 100 && waiting().length; i++) {
            for (const g of waiting()) {
                g.scrollIntoView();
                await wait(20);
            }
        }
        tests.lookAtTexts();
        found.text = document.body.innerText;
        if (can && !document.querySelector(".heads .wrong") && data.groups[0].maps[0].rows < 100)
            for (const group of data.groups)
                for (const map of group.maps) {
                    const weights = await unpack(map), all = [], hidden = [];
                    for (let row = 0; row < map.rows; row++)
                        for (let column = 0; column < map.columns; column++) {
                            all.push(weightAt(map, weights, row, column));
                            hidden.push(isHidden(map, weights, row, column));
                        }
                    found.maps.push(all);
                    found.hidden.push(hidden);
                }
        const box = grids()[0];
        if (box) {
            box.focus();
            for (const key of ["ArrowRight", "ArrowRight", "ArrowDown", "ArrowLeft", "ArrowUp", "ArrowUp", "End",
                               "Home"]) {
                press(box, key);
                found.said.push(say.textContent);
            }
            press(box, "End", {ctrlKey: true});
            found.said.push(say.textContent);
            press(box, "Home", {ctrlKey: true});
            const canvas = box.querySelector("canvas"), at = canvas.getBoundingClientRect();
            found.corner = {box: [box.clientWidth, box.clientHeight], tabs: box.tabIndex, live: say.ariaLive ||
                say.getAttribute("aria-live")};
            /* a tap on the cell at the canvas's lower right corner, whichever that is */
            canvas.dispatchEvent(new MouseEvent("click", {bubbles: true, clientX: at.right - 8,
                                                          clientY: at.bottom - 8}));
            found.tapped = say.textContent;
            const [, row, column] = /\(row (\d+)\) attends to .*\(column (\d+)\)/.exec(found.tapped) || [];
            press(box, "Home", {ctrlKey: true});
            const sharp = canvas.width / canvas.clientWidth;
            found.pixels.push({row: Number(row), column: Number(column),
                               rgb: bytesOf(canvas, (at.width - 8) * sharp, (at.height - 8) * sharp)});
        }
        const maps = document.getElementById("maps").clientWidth;
        found.grids = grids().map((g) => ({room: maps, seen: g.clientWidth, wide: g.firstChild.offsetWidth,
                                           reach: g.scrollWidth, right: g.getBoundingClientRect().right}));
        found.small = document.querySelectorAll(".small").length;
        found.smallSizes = [...document.querySelectorAll(".small canvas")].slice(0, 3).map(coloured);
        found.choose = !document.getElementById("choose").hidden;
        found.ramp = colours.ramp;
        found.strips = [...document.querySelectorAll("#scale rect")].map((e) => e.getAttribute("fill-opacity"));
        found.covered = covered();
        found.travelled = can ? await travel() : null;
        tests.leave(found);
    }
    look().catch((error) => {
        tests.wrong.push(String(error.stack));
        tests.leave({});
    });
}
