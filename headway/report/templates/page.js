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

  const draw = (row, at, limit) => {
    const chart = document.getElementById("rate-chart");
    if (!chart) return;
    const top = Number(chart.dataset.top), right = Number(chart.dataset.right);
    const point = (x, y) => (100 * x / right).toFixed(2) + "," + (100 - 100 * y / top).toFixed(2);
    const known = row.map((cell, i) => [data.rates[i], cell]).filter(([, cell]) => cell[0] === "ok");
    const within = (y) => y !== null && y <= top;
    const lines = (place) => known.filter(([, cell]) => within(cell[place]))
      .map(([x, cell]) => point(x, cell[place])).join(" ");
    const polylines = chart.querySelectorAll("polyline");
    polylines.forEach((line, i) => line.setAttribute(
      "points", i === 0 ? lines(data.statistic) : ""));
    const band = chart.querySelector("polygon");
    if (band) {
      const inside = known.filter(([, cell]) => within(cell[5]));
      band.setAttribute("points", [
        ...inside.map(([x, cell]) => point(x, Math.min(cell[6] ?? top, top))),
        ...inside.reverse().map(([x, cell]) => point(x, cell[5]))].join(" "));
    }
    const plot = chart.parentElement;
    const place = (line, a, b, value) => {
      if (line) { line.setAttribute(a, value); line.setAttribute(b, value); }
    };
    place(plot.querySelector("line.limit"), "y1", "y2", (100 - Math.min(100, 100 * limit / top)).toFixed(2) + "%");
    if (at !== null) place(plot.querySelector("line.here"), "x1", "x2", (100 * at / right).toFixed(2) + "%");
  };

  const show = () => {
    for (const [name, slider] of Object.entries(sliders)) {
      const text = data.stops[name][Number(slider.value)];
      slider.setAttribute("aria-valuetext", text);
      find(name + "-text").textContent = text;
    }
    const limit = data.targets[Number(sliders.target.value)];
    const trigger = Number(sliders.trigger.value);
    // The first and the last stop of these two lie outside of what was computed.
    const r = Number(sliders.rate.value) - 1, n = Number(sliders.nodes.value) - 1;
    if (n < 0 || n >= data.nodes.length || r < 0 || r >= data.rates.length) {
      clear();
      say("unknown", "not computed: run headway predict for this");
      find("command").textContent = "";
      return;
    }
    const row = cells(n, trigger), cell = row[r], nodes = data.nodes[n];
    draw(row, data.rates[r], limit);
    find("command").textContent = data.command
      .replace("{rate}", String(data.rates[r]))
      .replace("{trigger}", String(data.triggers[trigger]))
      .replace("{executors}", String(nodes * data.executors_per_node));
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
    put("high", cell[6], duration(high));
    const met = high <= limit;
    say(met ? "met" : "missed", (met ? "✓ met: " : "✗ missed: ") + data.statistic_name + " up to "
      + duration(high) + ", limit " + duration(limit) + (cell[9] ? "" : " (extrapolated)"));
  };
  for (const slider of Object.values(sliders)) slider.addEventListener("input", show);
  show();
})();
