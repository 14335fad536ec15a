"use strict";
/* Charts of the report: bars over a column's values or dates, and lines. */

/** Bars: how a cluster's rows spread over a column's values. */
function valueBars(column, counts) {
  // At least a tenth of the rows, so that the bars of rare values stay short.
  const longest = Math.max(0.1, ...counts.values.flatMap((each) => [each.share, each.overall]));
  const lines = counts.values.map((each) => {
    const title = `${each.value}: ${count(each.count)} rows, ${percent(each.share)} of the cluster; ${percent(each.overall)} of all texts`;
    return make("li", { title }, make("span", { class: "value", text: each.value, dir: "auto" }),
      make("span", { class: "track", "aria-hidden": "true" }, make("span", { class: "fill", style: `width:${(100 * each.share / longest).toFixed(1)}%` }),
        make("span", { class: "expected", style: `left:${(100 * each.overall / longest).toFixed(1)}%` })),
      make("span", { class: "count", text: `${count(each.count)} · ×${each.lift >= 9.95 ? count(Math.round(each.lift)) : each.lift.toFixed(1)}` }));
  });
  return make("div", { class: "by" }, make("h4", { text: column }), make("ul", {}, ...lines), remainder(counts));
}

/** The same for dates: a bar per bin, and a line for the rows expected if the cluster were spread like all texts. */
function dateBars(column, counts) {
  const all = Object.entries(data.by[column].dates), height = 44, width = 300, step = width / all.length;
  const rows = all.map(([start]) => counts.dates[start] ?? 0), total = rows.reduce((a, b) => a + b, 0);
  const everywhere = all.reduce((sum, [, n]) => sum + n, 0) || 1, expected = all.map(([, n]) => total * n / everywhere);
  const highest = Math.max(1, ...rows, ...expected), top = (n) => height - (height - 2) * n / highest;
  const svg = makeSvg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${column}: ${count(total)} rows by ${counts.unit}`, preserveAspectRatio: "none" });
  all.forEach(([start], i) => {
    const bar = makeSvg("rect", { class: "fill", x: i * step + step * 0.08, width: step * 0.84, y: top(rows[i]), height: height - top(rows[i]) });
    // The tooltip covers the whole height of the bin.
    const hit = makeSvg("rect", { x: i * step, width: step, y: 0, height, "fill-opacity": 0 });
    hit.append(makeSvg("title", {}, `${counts.unit} from ${start}: ${count(rows[i])} rows`));
    svg.append(bar, hit);
  });
  if (all.length > 1) svg.append(makeSvg("polyline", { class: "expected-line", points: expected.map((n, i) => `${((i + 0.5) * step).toFixed(1)},${top(n).toFixed(1)}`).join(" ") }));
  const ends = make("p", { class: "ends" }, make("span", { text: all[0][0] }), make("span", { text: `by ${counts.unit}` }), make("span", { text: all.length > 1 ? all.at(-1)[0] : "" }));
  return make("div", { class: "by" }, make("h4", { text: column }), svg, ends, remainder(counts));
}

/** The rows that the bars leave out. */
function remainder(counts) {
  const parts = [counts.other ? `${count(counts.other)} with ${counts.other_values === 1 ? "another value" : `${count(counts.other_values)} other values`}` : "", counts.empty ? `${count(counts.empty)} empty` : ""];
  return make("p", { class: "soft", text: parts.filter(Boolean).join("; ") });
}

/** A line chart; lines are {points: [[x, y]], class}. */
function lineChart(title, lines, { marks = [], x = "", y = "", yFrom = null, yTo = null } = {}) {
  const width = 340, height = 190, left = 46, bottom = 30, top = 10, right = 10;
  const all = lines.flatMap((line) => line.points);
  const xs = all.map((point) => point[0]), ys = all.map((point) => point[1]).filter(Number.isFinite);
  const x0 = Math.min(...xs), x1 = Math.max(...xs), y0 = yFrom ?? Math.min(...ys), y1 = yTo ?? Math.max(...ys);
  const px = (value) => left + (width - left - right) * (x1 > x0 ? (value - x0) / (x1 - x0) : 0.5);
  const py = (value) => height - bottom - (height - bottom - top) * (y1 > y0 ? (value - y0) / (y1 - y0) : 0.5);
  const svg = makeSvg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": title });
  svg.append(makeSvg("line", { class: "axis", x1: left, y1: height - bottom, x2: width - right, y2: height - bottom }), makeSvg("line", { class: "axis", x1: left, y1: top, x2: left, y2: height - bottom }));
  const short = (value) => Math.abs(value) >= 1000 ? count(Math.round(value)) : String(Number(value.toPrecision(Math.abs(value) < 0.01 ? 1 : 3)));
  svg.append(makeSvg("text", { x: left - 4, y: top + 8, "text-anchor": "end" }, short(y1)), makeSvg("text", { x: left - 4, y: height - bottom, "text-anchor": "end" }, short(y0)),
    makeSvg("text", { x: left, y: height - bottom + 14 }, short(x0)), makeSvg("text", { x: width - right, y: height - bottom + 14, "text-anchor": "end" }, short(x1)),
    makeSvg("text", { x: (left + width - right) / 2, y: height - 4, "text-anchor": "middle" }, x));
  // Names of marks that are close to each other go to separate lines; a letter takes about six pixels.
  const ends = [];
  for (const mark of marks) {
    const wide = 6 * mark.name.length + 6, from = Math.max(left, Math.min(px(mark.at) + 3, width - right - wide));
    let line = 0;
    while (ends[line] > from) line++;
    ends[line] = from + wide;
    svg.append(makeSvg("line", { class: "stage-line", x1: px(mark.at), x2: px(mark.at), y1: top, y2: height - bottom }), makeSvg("text", { class: "mark", x: from, y: top + 9 + 14 * line }, mark.name));
  }
  for (const line of lines) svg.append(makeSvg("polyline", { class: `line ${line.class ?? ""}`, points: line.points.filter((point) => Number.isFinite(point[1])).map((point) => `${px(point[0]).toFixed(1)},${py(point[1]).toFixed(1)}`).join(" ") }));
  return make("figure", {}, make("figcaption", { text: y ? `${title} (${y})` : title }), svg);
}
