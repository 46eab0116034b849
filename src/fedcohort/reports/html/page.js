// What needs a reader's hand: choosing, highlighting, reading values, saving. The page is complete
// without it.
"use strict";
(() => {
  const root = document.documentElement;
  const all = (selector, inside = document) => [...inside.querySelectorAll(selector)];
  const values = JSON.parse(document.getElementById("data").textContent);
  const MOST_HIGHLIGHTED = 4;

  // Panels: one at a time, chosen for the whole page (kinds of run) or for one figure.

  function showPanel(figure, name) {
    for (const panel of all(".panel", figure)) panel.hidden = panel.dataset.panel !== name;
  }

  const shownPanel = (figure) => figure.querySelector(".panel:not([hidden])");

  function showKind(kind) {
    for (const figure of all("figure[data-by=kind]")) showPanel(figure, kind);
  }

  // Highlighting: at most four schemes in the folded figures.

  const boxes = all("#schemes input");
  const slots = new Map();

  function readSlots() {
    for (const box of boxes) {
      if (!box.checked) slots.delete(box.value);
    }
    for (const box of boxes) {
      if (!box.checked || slots.has(box.value)) continue;
      const taken = new Set(slots.values());
      slots.set(box.value, [0, 1, 2, 3].find((slot) => !taken.has(slot)));
    }
    const full = slots.size >= MOST_HIGHLIGHTED;
    for (const box of boxes) box.disabled = full && !box.checked;
  }

  function highlight() {
    readSlots();
    for (const series of all("#figures .series")) {
      series.classList.remove("h0", "h1", "h2", "h3", "other");
      const slot = slots.get(series.dataset.name);
      series.classList.add(slot === undefined ? "other" : `h${slot}`);
      if (slot !== undefined) series.parentNode.append(series);
    }
  }

  // Values under the pointer, read from the drawn lines.

  function placeAt(path, x) {
    let low = 0;
    let high = path.getTotalLength();
    if (path.getPointAtLength(high).x < x - 1 || path.getPointAtLength(0).x > x + 1) return null;
    for (let step = 0; step < 24; step += 1) {
      const middle = (low + high) / 2;
      if (path.getPointAtLength(middle).x < x) low = middle;
      else high = middle;
    }
    return path.getPointAtLength(low).y;
  }

  const shorter = (value) => Number(value.toPrecision(4)).toLocaleString("en");

  function readValues(svg, event) {
    const plane = svg.querySelector(".plane");
    const [xLow, xHigh, yLow, yHigh, left, right, bottom, top] =
      plane.dataset.scales.split(" ").map(Number);
    const corner = svg.getBoundingClientRect();
    let x = (event.clientX - corner.left) * (svg.viewBox.baseVal.width / corner.width);
    if (x < left || x > right) return clearValues(svg);
    let xValue = xLow + ((x - left) / (right - left)) * (xHigh - xLow);
    if ("whole" in plane.dataset) {
      xValue = Math.round(xValue);
      x = left + ((xValue - xLow) / (xHigh - xLow)) * (right - left);
    }
    const found = [];
    for (const series of all(".series:not(.other), .series:hover", plane)) {
      const path = series.querySelector(".line");
      const y = path && placeAt(path, x);
      if (y === null || y === undefined) continue;
      const value = yLow + ((bottom - y) / (bottom - top)) * (yHigh - yLow);
      found.push([value, series.dataset.name]);
    }
    found.sort((one, other) => other[0] - one[0]);
    const said = found.map(([value, name]) => `${name} ${shorter(value)}`).join(" · ");
    plane.querySelector(".cursor").setAttribute("d", `M${x} ${top}V${bottom}`);
    svg.closest(".panel").querySelector(".readout").textContent = `${plane.dataset.x} ${shorter(xValue)}: ${said}`;
    return undefined;
  }

  function clearValues(svg) {
    svg.querySelector(".cursor").removeAttribute("d");
    svg.closest(".panel").querySelector(".readout").textContent = "";
  }

  // Definitions: beside their words where there is room.

  function placeMeaning(term) {
    const meaning = term.querySelector(".meaning");
    meaning.classList.remove("placed");
    meaning.style.left = meaning.style.top = "";
    if (innerWidth < 640) return;
    const word = term.getBoundingClientRect();
    meaning.classList.add("placed");
    const size = meaning.getBoundingClientRect();
    const below = word.bottom + 8;
    const top = below + size.height > innerHeight ? word.top - size.height - 8 : below;
    meaning.style.left = `${Math.max(8, Math.min(word.left, innerWidth - size.width - 16))}px`;
    meaning.style.top = `${Math.max(8, top)}px`;
  }

  // Saving.

  function save(blob, name) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }

  async function csvBlob(figure) {
    const bytes = Uint8Array.from(atob(values[figure.id]), (letter) => letter.charCodeAt(0));
    const unpacked = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    return new Blob([await new Response(unpacked).text()], { type: "text/csv" });
  }

  const KEPT = [
    "fill", "fill-opacity", "stroke", "stroke-width", "stroke-dasharray", "stroke-linecap",
    "opacity", "visibility", "text-anchor", "font-family", "font-size", "font-weight",
  ];

  // A drawing that needs no style sheet: what the style sheet says is written into it.
  function svgText(figure) {
    const drawn = all("svg", shownPanel(figure)).find((svg) => svg.checkVisibility());
    const copy = drawn.cloneNode(true);
    const parts = all("*", drawn);
    all("*", copy).forEach((part, place) => {
      const style = getComputedStyle(parts[place]);
      for (const name of KEPT) part.style.setProperty(name, style.getPropertyValue(name));
    });
    const { width, height } = drawn.viewBox.baseVal;
    copy.setAttribute("width", width);
    copy.setAttribute("height", height);
    copy.style.background = getComputedStyle(document.body).backgroundColor;
    return new XMLSerializer().serializeToString(copy);
  }

  async function pngBlob(figure) {
    const source = new Blob([svgText(figure)], { type: "image/svg+xml" });
    const image = new Image();
    image.src = URL.createObjectURL(source);
    await image.decode();
    const canvas = document.createElement("canvas");
    canvas.width = 2 * image.width;
    canvas.height = 2 * image.height;
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    URL.revokeObjectURL(image.src);
    return new Promise((resolve) => { canvas.toBlob(resolve, "image/png"); });
  }

  const BLOBS = {
    csv: csvBlob,
    svg: (figure) => new Blob([svgText(figure)], { type: "image/svg+xml" }),
    png: pngBlob,
  };

  // Print shows everything: folded parts are opened, and closed again afterwards.

  let opened = [];

  function unfold(printing) {
    if (printing) opened = all("details:not([open])");
    for (const part of opened) part.open = printing;
    if (!printing) opened = [];
  }

  // Start.

  root.classList.add("scripted");
  for (const figure of all("figure")) {
    const first = figure.querySelector(".panel");
    if (first) showPanel(figure, first.dataset.panel);
    figure.querySelector("select.own")?.addEventListener("change", (event) => {
      showPanel(figure, event.target.value);
    });
    for (const button of all("button[data-as]", figure)) {
      button.addEventListener("click", async () => {
        const ending = button.dataset.as;
        save(await BLOBS[ending](figure), `fedcohort-${figure.id}.${ending}`);
      });
    }
  }
  const kind = document.getElementById("kind");
  if (kind) {
    showKind(kind.value);
    kind.addEventListener("change", () => showKind(kind.value));
  }
  document.getElementById("schemes")?.addEventListener("change", highlight);
  for (const series of all("#figures .series:not(.other)")) {
    const box = boxes.find((one) => one.value === series.dataset.name && one.checked);
    if (box) slots.set(box.value, Number([...series.classList].find((one) => /^h\d$/.test(one))[1]));
  }
  readSlots();
  document.querySelector("form.controls")?.addEventListener("submit", (event) => {
    event.preventDefault();
  });
  for (const plane of all(".plane")) {
    const svg = plane.closest("svg");
    svg.addEventListener("pointermove", (event) => readValues(svg, event));
    svg.addEventListener("pointerleave", () => clearValues(svg));
  }
  for (const term of all(".term")) {
    term.addEventListener("pointerenter", () => placeMeaning(term));
    term.addEventListener("focus", () => placeMeaning(term));
  }
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") document.activeElement?.blur();
  });
  for (const button of all(".copy")) {
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(button.closest(".code").querySelector("pre").textContent);
      button.textContent = "Copied";
    });
  }
  matchMedia("print").addEventListener("change", (query) => unfold(query.matches));
  addEventListener("beforeprint", () => { if (!opened.length) unfold(true); });
  addEventListener("afterprint", () => unfold(false));
  root.dataset.ready = "yes";
})();
