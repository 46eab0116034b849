// Draws the charts of the page with plotly, from the values that `plots.py` wrote into it.
"use strict";
(() => {
  const page = JSON.parse(document.getElementById("data").textContent);

  const darkScheme = matchMedia("(prefers-color-scheme: dark)");
  const printing = matchMedia("print");
  const narrowScreen = matchMedia("(max-width: 40rem)");

  const DASHES = ["solid", "dash", "dashdot", "dot"];
  const SYMBOLS = [
    "circle", "square", "diamond", "cross", "x", "triangle-up", "star", "hexagon", "circle",
  ];
  // Viridis, as red, green and blue.
  const SCALE = [[68, 1, 84], [59, 82, 139], [33, 145, 140], [94, 201, 98], [253, 231, 37]];
  const FOUR_DIGITS = ":.4~g";

  const hiddenSchemes = new Set();
  let kind = page.kinds[0];

  // Colours.

  const isDark = () => darkScheme.matches && !printing.matches;
  const inkColour = () => (isDark() ? "#ececec" : "#1b1b1b");
  const gridColour = () => (isDark() ? "#3a3e46" : "#e3e3e3");
  const seriesColour = (series) => page.palette[isDark() ? "dark" : "light"][series.colour];

  function faded(hex) {
    const parts = [1, 3, 5].map((start) => parseInt(hex.slice(start, start + 2), 16));
    return `rgba(${parts.join(",")},0.18)`;
  }

  // The colour at a place between 0 and 1 of the scale.
  function scaleColour(share) {
    const place = Math.min(share, 0.9999) * (SCALE.length - 1);
    const step = Math.floor(place);
    const parts = SCALE[step].map((low, part) => {
      const high = SCALE[step + 1][part];
      return Math.round(low + (place - step) * (high - low));
    });
    return `rgb(${parts.join(",")})`;
  }

  function stackColour(series) {
    return series.shade === undefined ? seriesColour(series) : scaleColour(series.shade);
  }

  // Text. Plotly reads tags and percent signs in names, so they are escaped.

  function escapeText(text) {
    return text
      .replace(/&/g, "&amp;")
      .replace(/</g, "&lt;")
      .replace(/>/g, "&gt;")
      .replace(/%/g, "&#37;");
  }

  const escapeLabels = (values) =>
    values.map((value) => (typeof value === "string" ? escapeText(value) : value));

  // Traces: one function per type of series. Each returns the traces of one series.

  const named = (series) => ({ name: series.name, legendgroup: series.name });
  const zeroIfUnknown = (values) => values.map((value) => value || 0);

  function errorBars(values, colour) {
    return { type: "data", array: zeroIfUnknown(values), color: colour, thickness: 1.2 };
  }

  function bandTrace(series) {
    const { x, y, sd } = series.data;
    const known = x.map((_, i) => i).filter((i) => y[i] !== null);
    const along = known.map((i) => x[i]);
    const upper = known.map((i) => y[i] + (sd[i] || 0));
    const lower = known.map((i) => y[i] - (sd[i] || 0));
    return {
      ...named(series),
      x: along.concat([...along].reverse()),
      y: upper.concat(lower.reverse()),
      mode: "lines",
      fill: "toself",
      fillcolor: faded(seriesColour(series)),
      line: { width: 0 },
      hoverinfo: "skip",
      showlegend: false,
    };
  }

  function lineTraces(series) {
    const { x, y, sd } = series.data;
    const colour = seriesColour(series);
    const spread = (value) => (value === null ? "" : ` ± ${Number(value.toPrecision(3))}`);
    const line = {
      ...named(series),
      x,
      y,
      customdata: sd.map(spread),
      mode: x.length > 1 ? "lines" : "markers",
      line: { color: colour, dash: DASHES[series.dash], width: 2 },
      marker: { color: colour },
      hovertemplate: `%{y${FOUR_DIGITS}}%{customdata}`,
    };
    const hasBand = sd.some((value) => value !== null) && y.some((value) => value !== null);
    return hasBand ? [bandTrace(series), line] : [line];
  }

  function markTraces(series) {
    return [{
      ...named(series),
      x: series.data.x,
      y: series.data.y,
      mode: "markers",
      marker: { color: seriesColour(series), size: 7, line: { color: inkColour(), width: 0.5 } },
      hovertemplate: `%{y${FOUR_DIGITS}}`,
      showlegend: false,
    }];
  }

  function boxTraces(series) {
    const { x, low, q1, median, q3, high } = series.data;
    const colour = seriesColour(series);
    return [{
      ...named(series),
      type: "box",
      x,
      lowerfence: low,
      q1,
      median,
      q3,
      upperfence: high,
      line: { color: colour, width: 1.4 },
      fillcolor: faded(colour),
    }];
  }

  function barTraces(series) {
    return [{
      ...named(series),
      type: "bar",
      x: escapeLabels(series.data.x),
      y: series.data.y,
      marker: { color: seriesColour(series) },
      error_y: errorBars(series.data.sd, inkColour()),
      hovertemplate: `%{y${FOUR_DIGITS}}<extra>${series.name}</extra>`,
    }];
  }

  function stackTraces(series) {
    const border = { width: 0.5, color: isDark() ? "#9aa0aa" : "#ffffff" };
    return [{
      ...named(series),
      type: "bar",
      x: escapeLabels(series.data.x),
      y: series.data.y,
      marker: { color: stackColour(series), line: border },
      hovertemplate: `client %{x}: %{y}<extra>${series.name}</extra>`,
    }];
  }

  function dotTraces(series) {
    const colour = seriesColour(series);
    const border = { color: inkColour(), width: 0.5 };
    return [{
      ...named(series),
      x: series.data.x,
      y: series.data.y,
      mode: "markers",
      marker: { color: colour, size: 11, symbol: SYMBOLS[series.colour], line: border },
      error_x: errorBars(series.data["sd x"], colour),
      error_y: errorBars(series.data["sd y"], colour),
      hovertemplate: `%{x${FOUR_DIGITS}}, %{y${FOUR_DIGITS}}<extra>${series.name}</extra>`,
    }];
  }

  function groupTraces(series) {
    const { x, y, sd } = series.data;
    const colour = seriesColour(series);
    const border = { color: inkColour(), width: 0.5 };
    return [{
      ...named(series),
      x: escapeLabels(x),
      y,
      offsetgroup: series.name,
      mode: "markers",
      marker: { color: colour, size: 10, symbol: SYMBOLS[series.colour], line: border },
      error_y: errorBars(sd, colour),
      hovertemplate: `%{x}: %{y${FOUR_DIGITS}}<extra>${series.name}</extra>`,
    }];
  }

  function heatTraces(series) {
    const { x, z, capped } = series.data;
    const y = escapeLabels(series.data.y);
    const map = {
      type: "heatmap",
      name: series.name,
      x,
      y,
      z,
      zmin: 0,
      zmax: 1,
      colorscale: "Cividis",
      colorbar: {
        title: { text: "probability" },
        outlinewidth: 0,
        tickcolor: inkColour(),
        thickness: 14,
      },
      hovertemplate: `round %{x}, client %{y}: %{z${FOUR_DIGITS}}<extra></extra>`,
    };

    const rounds = [];
    const clients = [];
    capped.forEach((columns, row) => {
      for (const column of columns) {
        rounds.push(x[column]);
        clients.push(y[row]);
      }
    });
    if (rounds.length === 0) return [map];
    const circles = {
      name: "capped",
      x: rounds,
      y: clients,
      mode: "markers",
      marker: { symbol: "circle-open", size: 4, color: "#D55E00", line: { width: 1 } },
      hoverinfo: "skip",
      showlegend: true,
    };
    return [map, circles];
  }

  const TRACES = {
    lines: lineTraces,
    marks: markTraces,
    boxes: boxTraces,
    bars: barTraces,
    stack: stackTraces,
    dots: dotTraces,
    groups: groupTraces,
    heat: heatTraces,
  };

  // Layout.

  function axis(title, more) {
    return {
      title: { text: escapeText(title), standoff: 8 },
      gridcolor: gridColour(),
      zerolinecolor: gridColour(),
      linecolor: gridColour(),
      automargin: true,
      ...more,
    };
  }

  // The range from half a step before the first value to half a step after the last.
  function rangeAround(values) {
    const first = values[0];
    const last = values[values.length - 1];
    const step = values.length > 1 ? (last - first) / (values.length - 1) : 1;
    return [first - step / 2, last + step / 2];
  }

  const areWords = (values) => typeof values[0] === "string";

  function xAxisOptions(chart, data) {
    if (chart.type === "heat") return { range: rangeAround(data.x) };
    const hasCategories = ["boxes", "bars", "groups"].includes(chart.type)
      || (chart.type === "stack" && areWords(data.x));
    return hasCategories ? { type: "category" } : {};
  }

  // The range of all values with their error bars. Plotly would begin at zero for groups.
  function rangeOfGroups(allSeries) {
    const ends = allSeries.flatMap(({ data }) => data.y.flatMap((value, i) => {
      const spread = data.sd[i] || 0;
      return value === null ? [] : [value - spread, value + spread];
    }));
    const margin = 0.05 * (Math.max(...ends) - Math.min(...ends)) || 0.05;
    return [Math.min(...ends) - margin, Math.max(...ends) + margin];
  }

  function yAxisOptions(chart, data, allSeries) {
    if (chart.type === "groups" && allSeries.length > 0) return { range: rangeOfGroups(allSeries) };
    if (chart.type !== "heat") return {};
    return areWords(data.y) ? { type: "category" } : { range: rangeAround(data.y) };
  }

  function layout(chart, allSeries) {
    const data = allSeries.length > 0 ? allSeries[0].data : { x: [], y: [] };
    const isStack = chart.type === "stack";
    return {
      xaxis: axis(chart.axes.x, xAxisOptions(chart, data)),
      yaxis: axis(chart.axes.y, yAxisOptions(chart, data, allSeries)),
      autosize: true,
      height: narrowScreen.matches ? 400 : 420,
      margin: { l: 56, r: 12, t: 12, b: 48 },
      paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)",
      font: { color: inkColour(), size: 13, family: "system-ui, sans-serif" },
      hovermode: chart.type === "lines" ? "x unified" : "closest",
      hoverlabel: { bgcolor: isDark() ? "#2a2e35" : "#ffffff", font: { color: inkColour() } },
      boxmode: "group",
      scattermode: chart.type === "groups" ? "group" : "overlay",
      barmode: isStack ? "stack" : "group",
      bargap: isStack ? 0.08 : 0.2,
      legend: { orientation: "h", yanchor: "bottom", y: 1.01, x: 0 },
      showlegend: chart.type !== "bars" || !narrowScreen.matches,
      uirevision: "kept",  // plotly keeps the zoom when it draws again
    };
  }

  // Drawing.

  // The panel to draw: the kind of run of the whole page, or the chart's own choice.
  // null if nothing was recorded for the kind of run.
  function chosenPanel(chart) {
    if (chart.by === "kind") return chart.choices[kind] ? kind : null;
    const select = document.querySelector(`#${chart.id} select.own`);
    return select ? select.value : Object.keys(chart.choices)[0];
  }

  function describe(chart, panel) {
    if (panel === null) return "Not recorded for this kind of run.";
    const needsKind = chart.by === "kind" && page.kinds.length > 1;
    return (needsKind ? `${kind}: ` : "") + chart.summary[panel];
  }

  function seriesTraces(chart, series) {
    const traces = TRACES[series.type]({ ...series, name: escapeText(series.name) });
    const isHidden = chart.by === "kind" && hiddenSchemes.has(series.name);
    return isHidden ? traces.map((trace) => ({ ...trace, visible: "legendonly" })) : traces;
  }

  function draw(chart) {
    const figure = document.getElementById(chart.id);
    const plot = figure.querySelector(".plot");
    const panel = chosenPanel(chart);
    const allSeries = panel === null ? [] : chart.choices[panel];

    const words = describe(chart, panel);
    figure.querySelector(".summary").textContent = words;
    plot.setAttribute("aria-label", `${chart.title}: ${words}`);

    const traces = allSeries.flatMap((series) => seriesTraces(chart, series));
    return Plotly.react(plot, traces, layout(chart, allSeries), {
      responsive: true,
      displaylogo: false,
      scrollZoom: false,
      modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"],
      toImageButtonOptions: { format: "svg", filename: fileName(chart) },
    });
  }

  const drawAll = () => Promise.all(page.charts.map(draw));

  // Downloads.

  const fileName = (chart) => `fedcohort-${chart.id}`;

  function csvCell(value) {
    if (value === null || value === undefined) return "";
    const text = String(value);
    return /[",\n]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text;
  }

  function heatRows(series) {
    const { x, y, z, capped } = series.data;
    const rows = [];
    y.forEach((client, row) => {
      x.forEach((round, column) => {
        rows.push([round, client, z[row][column], capped[row].includes(column) ? 1 : 0]);
      });
    });
    return rows;
  }

  function seriesRows(chart, series) {
    if (series.type === "heat") return heatRows(series);
    const columns = Object.keys(chart.columns);
    return series.data.x.map((_, i) => columns.map((column) => (series.data[column] || [])[i]));
  }

  function csvText(chart) {
    const rows = [[chart.by, "series", ...Object.values(chart.columns)]];
    for (const [panel, allSeries] of Object.entries(chart.choices)) {
      for (const series of allSeries) {
        for (const row of seriesRows(chart, series)) rows.push([panel, series.name, ...row]);
      }
    }
    return rows.map((row) => row.map(csvCell).join(",")).join("\n") + "\n";
  }

  function downloadCsv(chart) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([csvText(chart)], { type: "text/csv" }));
    link.download = `${fileName(chart)}.csv`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }

  function downloadImage(chart, format) {
    const plot = document.querySelector(`#${chart.id} .plot`);
    const scale = format === "png" ? 2 : 1;
    Plotly.downloadImage(plot, {
      format, filename: fileName(chart), width: 900, height: 520, scale,
    });
  }

  function download(chart, format) {
    if (format === "csv") downloadCsv(chart);
    else downloadImage(chart, format);
  }

  // Controls.

  for (const chart of page.charts) {
    const figure = document.getElementById(chart.id);
    figure.querySelector("select.own")?.addEventListener("change", () => draw(chart));
    for (const button of figure.querySelectorAll("button[data-as]")) {
      button.addEventListener("click", () => download(chart, button.dataset.as));
    }
  }

  document.getElementById("kind")?.addEventListener("change", (event) => {
    kind = event.target.value;
    drawAll();
  });

  document.getElementById("schemes")?.addEventListener("change", (event) => {
    const scheme = event.target.value;
    if (event.target.checked) hiddenSchemes.delete(scheme);
    else hiddenSchemes.add(scheme);
    drawAll();
  });

  document.querySelector("form.controls")?.addEventListener("submit", (event) => {
    event.preventDefault();
  });

  for (const query of [darkScheme, printing, narrowScreen]) {
    query.addEventListener("change", drawAll);
  }

  drawAll().then(() => {
    document.documentElement.dataset.drawn = "yes";
  });
})();
