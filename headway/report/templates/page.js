(() => {
  "use strict";
  document.documentElement.classList.add("js");
  // Tables that are wider than the screen are scrolled by keyboard, too.
  const focusable = () => {
    for (const box of document.querySelectorAll(".wide")) {
      if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
      else box.removeAttribute("tabindex");
    }
  };
  addEventListener("resize", focusable);
  focusable();
  for (const button of document.querySelectorAll("button.copy")) {
    button.addEventListener("click", async () => {
      const from = document.getElementById(button.dataset.copy);
      try {
        await navigator.clipboard.writeText(from.textContent.trim() + "\n");
        button.textContent = "Copied";
      } catch {
        getSelection().selectAllChildren(from);
        button.textContent = "Selected";
      }
      setTimeout(() => { button.textContent = "Copy"; }, 1500);
    });
  }
  const holder = document.getElementById("what-if-data");
  if (!holder) return;
  const data = JSON.parse(holder.textContent);
  const find = (name) => document.getElementById("w-" + name);
  const sliders = Object.fromEntries(
    ["rate", "target", "nodes", "trigger"].map((name) => [name, find(name)]));

  // As headway.units.format_duration.
  const duration = (s) => {
    if (!Number.isFinite(s)) return "unbounded";
    if (s === 0) return "0 ms";
    const three = (value) => String(Number(value.toPrecision(3)));
    if (s < 0.0009995) return three(s * 1e6) + " us";
    if (s < 0.01) return three(s * 1e3) + " ms";
    if (s < 1) return (s * 1e3).toFixed(0) + " ms";
    if (s < 10) return s.toFixed(2) + " s";
    if (s < 120) return s.toFixed(1) + " s";
    if (s < 5400) return three(s / 60) + " min";
    return s < 259200 ? three(s / 3600) + " h" : three(s / 86400) + " d";
  };
  const rate = (r) => {
    const three = (value) => String(Number(value.toPrecision(3)));
    if (r >= 1e9) return three(r / 1e9) + "G/s";
    return r >= 1e6 ? three(r / 1e6) + "M/s" : r >= 1e3 ? three(r / 1e3) + "k/s" : three(r) + "/s";
  };
  const put = (name, value, text) => {
    const element = find(name);
    if (!element) return;
    element.value = value === null ? "" : String(value);
    element.textContent = text;
  };

  const cells = (nodes, trigger) => {
    const start = (nodes * data.triggers.length + trigger) * data.rates.length;
    return data.cells.slice(start, start + data.rates.length);
  };
  // A cell: state, mean, p50, p95, p99, low, high, utilisation in per cent, stable up to.
  const clear = () => {
    for (const name of ["mean", "p50", "p95", "p99", "high", "load", "stable", "cost"]) {
      put(name, null, "-");
    }
  };
  const say = (kind, text) => {
    const verdict = find("verdict");
    verdict.className = "verdict " + kind;
    verdict.textContent = text;
  };

  // The axis, the line and why it ends: as headway.report.evidence draws them.
  const axisOf = (values, limit) => {
    const finite = values.filter((value) => value !== null);
    const highest = finite.length ? Math.min(Math.max(...finite), Math.max(
      data.top.of_target * limit, data.top.of_lowest * Math.min(...finite))) : limit;
    const top = data.top.headroom * Math.max(limit, highest);
    const fits = data.steps.find(([step, labels]) => step * labels.length >= top * (1 - 1e-9));
    return [top, ...(fits || data.steps[data.steps.length - 1])];
  };
  const endOf = (row, values, top) => {
    const last = values.findLastIndex((value) => value !== null && value <= top);
    if (last < 0) return data.line_ends.never;
    if (last === values.length - 1) return data.line_ends.rates;
    return values[last + 1] === null ? data.line_ends.quoted : data.line_ends.chart;
  };
  const drawn = (chart, name, attributes, text) => {
    const element = document.createElementNS(chart.namespaceURI, name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    element.textContent = text || "";
    return element;
  };

  const draw = (row, nodes, trigger, target, rateAt) => {
    const chart = document.getElementById("rate-chart");
    if (!chart) return;
    const at = data.rates[rateAt], limit = data.targets[target];
    const values = row.map((cell) => cell[0] === "ok" ? cell[data.statistic] : null);
    const [top, step, labels] = axisOf(values, limit), right = Number(chart.dataset.right);
    const percent = (y) => (100 - 100 * Math.min(1, y / top)).toFixed(2) + "%";
    const ticks = [[0, "0"], ...labels.map((label, i) => [step * (i + 1), label])]
      .filter(([y]) => y <= top * (1 + 1e-9));
    document.getElementById("rate-chart-labels").replaceChildren(...ticks.map(([y, label]) =>
      drawn(chart, "text", {x: "100%", dx: -8, y: percent(y), dy: 4, "text-anchor": "end"}, label)));
    document.getElementById("rate-chart-grid").replaceChildren(...ticks.map(([y]) =>
      drawn(chart, "line", {
        class: y ? "grid" : "axis", x1: 0, x2: "100%", y1: percent(y), y2: percent(y)})));
    const point = (x, y) => (100 * x / right).toFixed(2) + "," + (100 - 100 * y / top).toFixed(2);
    const known = row.map((cell, i) => [data.rates[i], cell]).filter(([, cell]) => cell[0] === "ok");
    const within = (y) => y !== null && y <= top;
    const line = known.filter(([, cell]) => within(cell[data.statistic]))
      .map(([x, cell]) => point(x, cell[data.statistic])).join(" ");
    chart.querySelectorAll("polyline").forEach(
      (polyline, i) => polyline.setAttribute("points", i === 0 ? line : ""));
    const band = chart.querySelector("polygon");
    if (band) {
      const inside = known.filter(([, cell]) => within(cell[5]));
      band.setAttribute("points", [
        ...inside.map(([x, cell]) => point(x, Math.min(cell[6] ?? top, top))),
        ...inside.reverse().map(([x, cell]) => point(x, cell[5]))].join(" "));
    }
    const figure = chart.closest("figure");
    const move = (name, ends, value) => {
      for (const end of ends) figure.querySelector(name).setAttribute(end, value);
    };
    move(".plot line.limit", ["y1", "y2"], percent(limit));
    move(".plot line.here", ["x1", "x2"], (100 * at / right).toFixed(2) + "%");
    figure.querySelector(".limit-name").textContent = "target, " + data.target_names[target];
    figure.querySelector(".here-name").textContent = data.stops.rate[rateAt + 1];
    document.getElementById("rate-chart-caption").textContent =
      data.settings[nodes * data.triggers.length + trigger] + ", no rate limit; "
      + endOf(row, values, top) + ".";
  };
  // A box without a command would have nothing to copy.
  const command = (text) => {
    if (!find("same")) return;
    find("command").textContent = text;
    find("same").hidden = text === "";
  };

  const show = () => {
    for (const [name, slider] of Object.entries(sliders)) {
      const text = data.stops[name][Number(slider.value)];
      slider.setAttribute("aria-valuetext", text);
      find(name + "-text").textContent = text;
    }
    const target = Number(sliders.target.value), limit = data.targets[target];
    const trigger = Number(sliders.trigger.value);
    // The first and the last stop of these two lie outside of what was computed.
    const r = Number(sliders.rate.value) - 1, n = Number(sliders.nodes.value) - 1;
    if (n < 0 || n >= data.nodes.length || r < 0 || r >= data.rates.length) {
      clear();
      say("unknown", data.command ? "not computed: run headway predict for this" : "not computed");
      command("");
      return;
    }
    const row = cells(n, trigger), cell = row[r], nodes = data.nodes[n];
    draw(row, n, trigger, target, r);
    command(data.command
      .replace("{rate}", String(Number(data.rates[r].toPrecision(6))))
      .replace("{trigger}", String(data.triggers[trigger]))
      .replace("{executors}", String(nodes * data.executors_per_node)));
    if (data.cost_per_node_month !== null) {
      const cost = data.cost_per_node_month * nodes;
      put("cost", cost, cost.toLocaleString("en", {maximumFractionDigits: cost < 100 ? 2 : 0}));
    }
    const at = data.stops.rate[r + 1];
    put("load", cell[7], cell[7] === null ? "-" : cell[7].toFixed(0) + "%");
    put("stable", cell[8], cell[8] === null ? "-" : rate(cell[8]));
    const names = ["mean", "p50", "p95", "p99"];
    names.forEach((name, i) => put(name, cell[i + 1], cell[i + 1] === null ? "-" : duration(cell[i + 1])));
    if (cell[0] !== "ok") {
      put("high", null, "-");
      say("missed", cell[0] === "over"
        ? "✗ missed: not stable at " + at + ", the backlog grows"
        : "✗ missed: too close to saturation at " + at + " to quote a latency");
      return;
    }
    const high = cell[6] === null ? Infinity : cell[6];
    const bound = cell[6] === null ? "no upper bound" : duration(high);
    put("high", cell[6], bound);
    const met = high <= limit;
    say(met ? "met" : "missed", (met ? "✓ met: " : "✗ missed: ") + data.statistic_name
      + (cell[6] === null ? " without an upper bound" : " up to " + bound)
      + ", limit " + duration(limit) + (cell[9] ? "" : " (extrapolated)") + data.alone);
  };
  for (const slider of Object.values(sliders)) slider.addEventListener("input", show);
  show();
})();
