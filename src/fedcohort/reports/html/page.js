"use strict";
(() => {
  const page = JSON.parse(document.getElementById("data").textContent);
  const dark = matchMedia("(prefers-color-scheme: dark)"), print = matchMedia("print"), narrow = matchMedia("(max-width: 40rem)");
  const DASHES = ["solid", "dash", "dashdot", "dot"], SYMBOLS = ["circle", "square", "diamond", "cross", "x", "triangle-up", "star", "hexagon"];
  const hidden = new Set();
  let kind = page.kinds[0];

  const onDark = () => dark.matches && !print.matches;
  const colour = (one) => page.palette[onDark() ? "dark" : "light"][one.colour];
  const faded = (hex) => `rgba(${[1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16)).join(",")},0.18)`;
  const number = ":.4~g";

  const draw = {
    lines: (one) => {
      const { x, y, sd } = one.data, ink = colour(one);
      const known = sd.some((value) => value !== null) ? x.map((_, i) => i).filter((i) => y[i] !== null) : [];
      const up = known.map((i) => y[i] + (sd[i] || 0)), down = known.map((i) => y[i] - (sd[i] || 0)), at = known.map((i) => x[i]);
      const band = { x: at.concat([...at].reverse()), y: up.concat(down.reverse()), fill: "toself", fillcolor: faded(ink), mode: "lines",
        line: { width: 0 }, hoverinfo: "skip", showlegend: false, legendgroup: one.name, name: one.name };
      const line = { x, y, customdata: sd.map((value) => value === null ? "" : ` ± ${Number(value.toPrecision(3))}`), mode: x.length > 1 ? "lines" : "markers",
        name: one.name, legendgroup: one.name, line: { color: ink, dash: DASHES[one.dash], width: 2 }, marker: { color: ink },
        hovertemplate: `%{y${number}}%{customdata}` };
      return known.length ? [band, line] : [line];
    },
    boxes: (one) => {
      const { x, low, q1, median, q3, high } = one.data, ink = colour(one);
      return [{ type: "box", x, lowerfence: low, q1, median, q3, upperfence: high, name: one.name, legendgroup: one.name,
        line: { color: ink, width: 1.4 }, fillcolor: faded(ink) }];
    },
    bars: (one) => [{ type: "bar", x: safe(one.data.x), y: one.data.y, name: one.name, legendgroup: one.name, marker: { color: colour(one) },
      error_y: { type: "data", array: one.data.sd.map((value) => value || 0), color: ink(), thickness: 1.2 },
      hovertemplate: `%{y${number}}<extra>${one.name}</extra>` }],
    stack: (one) => [{ type: "bar", x: safe(one.data.x), y: one.data.y, name: one.name, legendgroup: one.name,
      marker: { color: one.shade === undefined ? colour(one) : shade(one.shade), line: { width: .5, color: onDark() ? "#9aa0aa" : "#ffffff" } },
      hovertemplate: `client %{x}: %{y}<extra>${one.name}</extra>` }],
    dots: (one) => [{ x: one.data.x, y: one.data.y, mode: "markers", name: one.name, legendgroup: one.name,
      marker: { color: colour(one), size: 11, symbol: SYMBOLS[one.colour], line: { color: ink(), width: .5 } },
      error_x: { type: "data", array: one.data["sd x"].map((value) => value || 0), color: colour(one), thickness: 1.2 },
      error_y: { type: "data", array: one.data["sd y"].map((value) => value || 0), color: colour(one), thickness: 1.2 },
      hovertemplate: `%{x${number}}, %{y${number}}<extra>${one.name}</extra>` }],
    heat: (one) => {
      const { x, z, capped } = one.data, y = safe(one.data.y), at = [], who = [];
      capped.forEach((rounds, row) => rounds.forEach((i) => { at.push(x[i]); who.push(y[row]); }));
      const map = { type: "heatmap", x, y, z, zmin: 0, zmax: 1, colorscale: "Cividis", name: one.name,
        colorbar: { title: { text: "probability" }, outlinewidth: 0, tickcolor: ink(), thickness: 14 },
        hovertemplate: `round %{x}, client %{y}: %{z${number}}<extra></extra>` };
      return at.length ? [map, { x: at, y: who, mode: "markers", name: "capped", hoverinfo: "skip", showlegend: true,
        marker: { symbol: "circle-open", size: 4, color: "#D55E00", line: { width: 1 } } }] : [map];
    },
  };
  const VIRIDIS = [[68, 1, 84], [59, 82, 139], [33, 145, 140], [94, 201, 98], [253, 231, 37]];
  function shade(share) {
    const at = Math.min(share, .9999) * 4, i = Math.floor(at);
    return `rgb(${VIRIDIS[i].map((low, c) => Math.round(low + (at - i) * (VIRIDIS[i + 1][c] - low))).join(",")})`;
  }
  function ink() { return onDark() ? "#ececec" : "#1b1b1b"; }
  function plain(text) { return text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;").replace(/%/g, "&#37;"); }
  const safe = (values) => values.map((value) => typeof value === "string" ? plain(value) : value);  // Plotly reads tags in names
  function span(values) {
    const step = values.length > 1 ? (values[values.length - 1] - values[0]) / (values.length - 1) : 1;
    return [values[0] - step / 2, values[values.length - 1] + step / 2];
  }

  function layout(chart, shown) {
    const lines = onDark() ? "#3a3e46" : "#e3e3e3", many = chart.type === "heat";
    const words = (chart.type === "stack" || many) && typeof shown[0].data[many ? "y" : "x"][0] === "string";
    const axis = (title, more) => ({ title: { text: plain(title), standoff: 8 }, gridcolor: lines, zerolinecolor: lines, linecolor: lines, automargin: true, ...more });
    const category = ["boxes", "bars"].includes(chart.type) || (chart.type === "stack" && words) ? { type: "category" } : {};
    return {
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", font: { color: ink(), size: 13, family: "system-ui, sans-serif" },
      margin: { l: 56, r: 12, t: 12, b: 48 }, height: narrow.matches ? 400 : 420, autosize: true,
      xaxis: axis(chart.axes.x, many ? { range: span(shown[0].data.x) } : category),
      yaxis: axis(chart.axes.y, !many ? {} : words ? { type: "category" } : { range: span(shown[0].data.y) }),
      hovermode: chart.type === "lines" ? "x unified" : "closest", boxmode: "group", barmode: chart.type === "stack" ? "stack" : "group",
      bargap: chart.type === "stack" ? .08 : .2, hoverlabel: { bgcolor: onDark() ? "#2a2e35" : "#ffffff", font: { color: ink() } },
      legend: { orientation: "h", yanchor: "bottom", y: 1.01, x: 0 }, showlegend: chart.type !== "bars" || !narrow.matches,
      uirevision: "kept",
    };
  }

  const chosen = (chart) => {
    if (chart.by === "kind") return chart.choices[kind] ? kind : null;
    const own = document.querySelector(`#${chart.id} select.own`);
    return own ? own.value : Object.keys(chart.choices)[0];
  };

  function redraw(chart) {
    const figure = document.getElementById(chart.id), plot = figure.querySelector(".plot"), choice = chosen(chart);
    const series = choice === null ? [] : chart.choices[choice], words = choice === null ? "Not recorded for this kind of run." :
      (chart.by === "kind" && page.kinds.length > 1 ? `${kind}: ` : "") + chart.summary[choice];
    const traces = series.flatMap((one) => draw[chart.type]({ ...one, name: plain(one.name) }).map((trace) =>
      chart.by === "kind" && hidden.has(one.name) ? { ...trace, visible: "legendonly" } : trace));
    figure.querySelector(".summary").textContent = words;
    plot.setAttribute("aria-label", `${chart.title}: ${words}`);
    return Plotly.react(plot, traces, layout(chart, series), { responsive: true, displaylogo: false, scrollZoom: false,
      modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"], toImageButtonOptions: { format: "svg", filename: `fedcohort-${chart.id}` } });
  }

  const quoted = (value) => { const text = value === null || value === undefined ? "" : String(value); return /[",\n]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text; };
  function csv(chart) {
    const names = Object.keys(chart.columns), rows = [[chart.by, "series", ...Object.values(chart.columns)]];
    for (const [choice, series] of Object.entries(chart.choices)) for (const one of series) {
      if (chart.type !== "heat") { one.data[names[0]].forEach((_, i) => rows.push([choice, one.name, ...names.map((name) => one.data[name][i])])); continue; }
      const { x, y, z, capped } = one.data;
      y.forEach((client, row) => x.forEach((round, i) => rows.push([choice, one.name, round, client, z[row][i], capped[row].includes(i) ? 1 : 0])));
    }
    return rows.map((row) => row.map(quoted).join(",")).join("\n") + "\n";
  }
  function download(chart, as) {
    const filename = `fedcohort-${chart.id}`, plot = document.querySelector(`#${chart.id} .plot`);
    if (as !== "csv") return Plotly.downloadImage(plot, { format: as, filename, width: 900, height: 520, scale: as === "png" ? 2 : 1 });
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([csv(chart)], { type: "text/csv" }));
    link.download = `${filename}.csv`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }

  const all = () => Promise.all(page.charts.map(redraw));
  for (const chart of page.charts) {
    const figure = document.getElementById(chart.id);
    figure.querySelector("select.own")?.addEventListener("change", () => redraw(chart));
    for (const button of figure.querySelectorAll("button[data-as]")) button.addEventListener("click", () => download(chart, button.dataset.as));
  }
  document.getElementById("kind")?.addEventListener("change", (event) => { kind = event.target.value; all(); });
  document.getElementById("schemes")?.addEventListener("change", (event) => {
    hidden[event.target.checked ? "delete" : "add"](event.target.value);
    all();
  });
  document.querySelector("form.controls")?.addEventListener("submit", (event) => event.preventDefault());
  for (const query of [dark, print, narrow]) query.addEventListener("change", all);
  all().then(() => { document.documentElement.dataset.drawn = "yes"; });
})();
