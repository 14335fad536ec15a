"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const listed = data.clusters;
/** By id, with nameless ones where clusters are gone; what the map reads. */
const clusters = Array.from({ length: data.ids ?? listed.length }, (_, id) => ({ id, name: "", size: 0 }));
for (const each of listed) clusters[each.id] = each;
const points = data.points;
const main = { x: unpack(points.x, Int16Array), y: unpack(points.y, Int16Array), cluster: unpack(points.cluster, Int32Array) };
const confidence = unpack(points.confidence, Uint8Array), runnerUp = unpack(points.runner_up, Int32Array);
const map = new PointMap(byId("points"), main, true);
const small = [];
let chosen = null, wanted = "";
/** What the map is coloured by and the list beside it holds: the groups, or, where labels were given, the labels. */
const byGroup = { of: main.cluster, named: clusters, list: data.about.noise ? [...listed, { id: -1, name: "In no group", size: data.about.noise }] : listed };
const labelled = points.label ? { of: unpack(points.label, Int32Array), named: data.labels } : null;
if (labelled) labelled.list = data.labels.map((each, id) => ({ id, ...each }));
let shade = byGroup;

/** Show what is both in the chosen group and holds the words searched for. */
function choose() {
  const words = wanted.toLowerCase();
  const any = chosen !== null || words;
  let found = 0;
  const shown = any ? new Uint8Array(points.count) : null;
  if (any) for (let i = 0; i < points.count; i++)
    if ((chosen === null || shade.of[i] === chosen) && (!words || lowered()[i].includes(words))) { shown[i] = 1; found++; }
  map.shown = shown;
  map.only = chosen === null ? null : new Set([chosen]);
  map.ask();
  for (const { view, of } of small) {
    view.shown = shown ? of.map((i) => shown[i]) : null;
    view.ask();
  }
  for (const button of byId("groups").querySelectorAll("button"))
    button.setAttribute("aria-pressed", String(Number(button.dataset.id) === chosen));
  byId("clear").hidden = !any;
  byId("found").textContent = any ? `${count(found)} of ${count(points.count)} texts` : "";
}
let lowCase = null;
function lowered() { return (lowCase ??= (points.texts ?? []).map((text) => text.toLowerCase())); }
function toggle(id) { chosen = chosen === id ? null : id; choose(); }

function fillHeader() {
  byId("title").textContent = data.about.title;
  byId("headline").append(...data.headline.map((text) => make("p", { text })));
  for (const section of document.querySelectorAll("section"))
    if (!section.hidden) byId("nav").append(make("a", { href: `#${section.id}`, text: section.dataset.title }));
}

function fillGroups() {
  byId("groups").setAttribute("aria-label", shade === labelled ? "Labels" : "Groups");
  byId("groups").replaceChildren(...shade.list.map((each) => make("li", {}, make("button", { type: "button", "data-id": each.id, "aria-pressed": "false", onclick: () => toggle(each.id) },
    swatch(each.id), make("span", { text: each.name, dir: "auto" }), make("span", { class: "count", text: count(each.size) })))));
}

/** By group or by label: the map, and the list beside it. */
function colourBy(next) {
  shade = next;
  map.shade = next === byGroup ? null : next;
  map._middles = null;
  chosen = null;
  fillGroups();
  choose();
}

/** How a group's rows spread over a column's values. */
function valueBars(column, counts) {
  // Rare values stay short.
  const most = Math.max(0.1, ...counts.values.flatMap((each) => [each.share, each.overall]));
  const lines = counts.values.map((each) => {
    const title = `${each.value}: ${count(each.count)} rows, ${percent(each.share)} of the group; ${percent(each.overall)} of all`;
    return make("li", { title }, make("span", { class: "value", text: each.value, dir: "auto" }),
      make("span", { class: "track", "aria-hidden": "true" }, make("span", { class: "fill", style: `width:${(100 * each.share / most).toFixed(1)}%` }),
        make("span", { class: "usual", style: `left:${(100 * each.overall / most).toFixed(1)}%` })),
      make("span", { class: "count", text: `${count(each.count)} · ×${each.lift >= 9.95 ? count(Math.round(each.lift)) : each.lift.toFixed(1)}` }));
  });
  return make("div", { class: "by" }, make("h4", { text: column }), make("ul", {}, ...lines), restOf(counts));
}

/** The same over time: a bar a bin, and a line for what an average group of its size would have. */
function dateBars(column, counts) {
  const all = Object.entries(data.by[column].dates), height = 44, width = 300, step = width / all.length;
  const rows = all.map(([start]) => counts.dates[start] ?? 0), total = rows.reduce((a, b) => a + b, 0);
  const everywhere = all.reduce((sum, [, n]) => sum + n, 0) || 1, usual = all.map(([, n]) => total * n / everywhere);
  const most = Math.max(1, ...rows, ...usual), top = (n) => height - (height - 2) * n / most;
  const svg = drawn("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${column}: ${count(total)} rows by ${counts.unit}`, preserveAspectRatio: "none" });
  all.forEach(([start], i) => {
    const bar = drawn("rect", { class: "fill", x: i * step + step * 0.08, width: step * 0.84, y: top(rows[i]), height: height - top(rows[i]) });
    // The whole height answers to the pointer.
    const hit = drawn("rect", { x: i * step, width: step, y: 0, height, "fill-opacity": 0 });
    hit.append(drawn("title", {}, `${counts.unit} from ${start}: ${count(rows[i])} rows`));
    svg.append(bar, hit);
  });
  if (all.length > 1) svg.append(drawn("polyline", { class: "usual-line", points: usual.map((n, i) => `${((i + 0.5) * step).toFixed(1)},${top(n).toFixed(1)}`).join(" ") }));
  const ends = make("p", { class: "ends" }, make("span", { text: all[0][0] }), make("span", { text: `by ${counts.unit}` }), make("span", { text: all.length > 1 ? all.at(-1)[0] : "" }));
  return make("div", { class: "by" }, make("h4", { text: column }), svg, ends, restOf(counts));
}

function restOf(counts) {
  const told = [counts.other ? `${count(counts.other)} with ${counts.other_values === 1 ? "another value" : `${count(counts.other_values)} other values`}` : "", counts.empty ? `${count(counts.empty)} empty` : ""];
  return make("p", { class: "soft", text: told.filter(Boolean).join("; ") });
}

function cardOf(card) {
  const marks = [["confidence", card.confidence, data.calibrated ? "how many of its texts belong there, estimated" : "how far the group is ahead of the next one, on average", 0],
    ["stability", card.stability, "how well it is found again when the clustering is repeated", 0.6],
    ["cohesion", card.cohesion, "mean cosine of its texts with their mean", 0],
    // Beyond a right angle two groups have nothing in common: more than all of it says nothing to a reader.
    ["separation", card.separation === null ? null : Math.min(1, card.separation), "how little it has in common with the nearest group: near 0 % the two are hardly two, at 100 % they share nothing", 0]];
  const told = marks.filter(([, value]) => value !== null && value !== undefined).map(([name, value, title, least]) =>
    make("div", { title, class: value < least ? "shaky" : "" }, make("b", { text: percent(value) }), name));
  const made = make("article", { class: "card", id: `group-${card.id}` },
    make("header", {}, swatch(card.id), make("h3", { text: card.name, title: card.keyword_name ?? null }), make("span", { class: "count", text: `${count(card.size)} · ${percent(card.share)}` })),
    ...(card.label ? [make("p", { class: "mostly", text: `Mostly ${card.label.name} (${percent(card.label.share)})`, dir: "auto", title: "the most frequent of the labels given, which were not used" })] : []),
    make("ul", { class: "words" }, ...card.keywords.map((text) => make("li", { text }))),
    make("ul", { class: "texts" }, ...card.representatives.map((text) => make("li", { text, dir: "auto" }))),
    make("div", { class: "marks" }, ...told),
    ...Object.entries(card.by ?? {}).map(([column, counts]) => (counts.kind === "dates" ? dateBars : valueBars)(column, counts)));
  if (card.borderline.length)
    made.append(make("details", {}, make("summary", { text: "Borderline texts" }), make("ul", { class: "texts" }, ...card.borderline.map((each) =>
      make("li", { dir: "auto" }, `${each.text} `, make("span", { class: "soft", text: clusters[each.runner_up] ? `→ ${clusters[each.runner_up].name}` : "" }))))));
  for (const topic of card.topics ?? [])
    made.append(make("p", { class: "soft", text: `Topic (${percent(topic.share)}): ${topic.words.slice(0, 6).join(", ")}` }));
  const near = card.nearest.filter((id) => clusters[id]).map((id) => clusters[id].name);
  const facts = [near.length ? `Nearest: ${near.join("; ")}.` : "", card.duplicates > 0.005 ? `${percent(card.duplicates)} repeat another text.` : ""];
  if (facts.join("")) made.append(make("p", { class: "soft", text: facts.join(" ").trim() }));
  return made;
}

function panel(told) {
  const canvas = make("canvas", { role: "img", "aria-label": told.title });
  const of = unpack(told.points, Int32Array);
  const view = new PointMap(canvas, { x: unpack(told.x, Int16Array), y: unpack(told.y, Int16Array), cluster: unpack(told.cluster, Int32Array) });
  small.push({ view, of: Uint32Array.from(of) });
  return make("figure", {}, make("figcaption", { text: told.title }), canvas);
}

function fillTrained() {
  const trained = data.trained;
  if (!trained) return;
  byId("trained").hidden = false;
  const body = byId("trained-body");
  body.append(make("p", { text: trained.verdict }));
  if (trained.kept.length)
    body.append(make("div", { class: "wide" }, make("table", {}, make("thead", {}, make("tr", {}, ...["Label-free criterion", "before", "after"].map((text) => make("th", { text })))),
      make("tbody", {}, ...trained.kept.map((each) => make("tr", {}, make("td", { text: each.name }), make("td", { text: each.before.toFixed(3) }), make("td", { text: each.after.toFixed(3) })))))));
  if (trained.panels.length)
    body.append(make("div", { class: "panels" }, panel({ ...trained.panels[0], title: "Before: the frozen encoder" }), panel({ ...trained.panels[1], title: "After fine-tuning" })));
  const changes = trained.changes, name = (id) => trained.names?.[id] || `group ${id}`;
  body.append(make("p", { text: `${percent(changes.agreement)} of the texts stayed in the group that matches their first one.` }));
  const listed = (ids) => ids.map((id) => `“${name(id)}”`).join(", ");
  // The largest part of a group has its name.
  const parts = (each) => { const others = each.after.filter((id) => !each.before.includes(id)); return others.length < each.after.length ? `: ${listed(others)} came out of it` : ` into ${listed(each.after)}`; };
  const told = { split: (each) => `${listed(each.before)} was split${parts(each)}`, merged: (each) => `${listed(each.before)} were merged into ${listed(each.after)}`,
    new: (each) => `${listed(each.after)} is new`, gone: (each) => `${listed(each.before)} is gone` };
  const happened = (changes.changes ?? []).filter((each) => told[each.kind]).slice(0, 12);
  if (happened.length) body.append(make("h3", { text: "Splits and mergers" }), make("ul", { class: "texts" }, ...happened.map((each) => make("li", { text: `${told[each.kind](each)}.` }))));
  const moves = (changes.moves ?? []).slice(0, 8);
  if (moves.length) body.append(make("h3", { text: "What moved most" }), make("ul", { class: "texts" }, ...moves.map((move) =>
    make("li", {}, `${count(move.rows)} texts from “${name(move.before)}” to “${name(move.after)}”`, move.examples.length ? make("ul", { class: "texts soft" }, ...move.examples.map((text) => make("li", { text, dir: "auto" }))) : ""))));
}

/** A line picture: lines are {points: [[x, y]], class}. */
function lineChart(title, lines, { marks = [], x = "", y = "", yFrom = null, yTo = null } = {}) {
  const width = 340, height = 190, left = 46, bottom = 30, top = 10, right = 10;
  const all = lines.flatMap((line) => line.points);
  const xs = all.map((point) => point[0]), ys = all.map((point) => point[1]).filter(Number.isFinite);
  const x0 = Math.min(...xs), x1 = Math.max(...xs), y0 = yFrom ?? Math.min(...ys), y1 = yTo ?? Math.max(...ys);
  const px = (value) => left + (width - left - right) * (x1 > x0 ? (value - x0) / (x1 - x0) : 0.5);
  const py = (value) => height - bottom - (height - bottom - top) * (y1 > y0 ? (value - y0) / (y1 - y0) : 0.5);
  const svg = drawn("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": title });
  svg.append(drawn("line", { class: "axis", x1: left, y1: height - bottom, x2: width - right, y2: height - bottom }), drawn("line", { class: "axis", x1: left, y1: top, x2: left, y2: height - bottom }));
  const short = (value) => Math.abs(value) >= 1000 ? count(Math.round(value)) : String(Number(value.toPrecision(Math.abs(value) < 0.01 ? 1 : 3)));
  svg.append(drawn("text", { x: left - 4, y: top + 8, "text-anchor": "end" }, short(y1)), drawn("text", { x: left - 4, y: height - bottom, "text-anchor": "end" }, short(y0)),
    drawn("text", { x: left, y: height - bottom + 14 }, short(x0)), drawn("text", { x: width - right, y: height - bottom + 14, "text-anchor": "end" }, short(x1)),
    drawn("text", { x: (left + width - right) / 2, y: height - 4, "text-anchor": "middle" }, x));
  // Names of stages that begin soon after each other stand in lines of their own; about six pixels a letter.
  const ends = [];
  for (const mark of marks) {
    const wide = 6 * mark.name.length + 6, from = Math.max(left, Math.min(px(mark.at) + 3, width - right - wide));
    let line = 0;
    while (ends[line] > from) line++;
    ends[line] = from + wide;
    svg.append(drawn("line", { class: "stage-line", x1: px(mark.at), x2: px(mark.at), y1: top, y2: height - bottom }), drawn("text", { class: "mark", x: from, y: top + 9 + 14 * line }, mark.name));
  }
  for (const line of lines) svg.append(drawn("polyline", { class: `line ${line.class ?? ""}`, points: line.points.filter((point) => Number.isFinite(point[1])).map((point) => `${px(point[0]).toFixed(1)},${py(point[1]).toFixed(1)}`).join(" ") }));
  return make("figure", {}, make("figcaption", { text: y ? `${title} (${y})` : title }), svg);
}

function fillCurves() {
  if (!data.curves) return;
  byId("curves").hidden = false;
  const many = data.curves.stages.length > 1;
  const marks = many ? data.curves.stages.map((stage) => ({ at: stage.step, name: stage.name })) : [];
  for (const [name, line] of Object.entries(data.curves.terms)) byId("curve-panels").append(lineChart(name.replaceAll("_", " "), [{ points: line }], { marks, x: "step" }));
}

/** The numbers of groups that were tried, and what spoke for each. */
function fillChoice() {
  const choice = data.choice;
  if (!choice) return;
  byId("choice").hidden = false;
  byId("choice-body").append(...choice.why.map((text) => make("p", { text: `${text[0].toUpperCase()}${text.slice(1)}.` })));
  const titles = { score: "sum of the signs, which decides", stability: "stability under resampling", silhouette: "silhouette", neighbours: "neighbours kept together", words: "texts with like words kept together", gap: "gap (shown, not counted)" };
  for (const [name, title] of Object.entries(titles)) {
    const line = choice.candidates.filter((each) => each[name] !== null).map((each) => [each.k, each[name]]);
    if (line.length > 1) byId("choice-panels").append(lineChart(title, [{ points: line }], { marks: [{ at: choice.k, name: String(choice.k) }], x: "groups" }));
  }
}

function fillCoverage() {
  const kept = data.coverage.map((point) => [point.least, 100 * point.share]);
  const right = data.coverage.filter((point) => point.right !== undefined).map((point) => [point.least, 100 * point.right]);
  const expected = data.coverage.filter((point) => point.expected !== undefined).map((point) => [point.least, 100 * point.expected]);
  const second = right.length ? right : data.calibrated ? expected : [];
  const lines = [{ points: kept }];
  if (second.length) lines.push({ points: second, class: "other" });
  const asked = data.about.abstained ? [{ at: data.about.min_confidence, name: "asked for" }] : [];
  const half = data.coverage.filter((point) => point.share >= 0.5).at(-1);
  const meaning = data.calibrated
    ? "Of texts with a confidence of 70 %, about 70 % are in the group where they belong: those of the subject that most texts of the group have. It is an estimate from the margins and the neighbours of the texts, made without labels."
    : "Confidence is how far a text's group is ahead of the runner-up; it is a margin, not a probability of being right.";
  byId("coverage").append(make("p", { text: `Half of the texts have a confidence of ${percent(half.least)} or more. ${meaning}` }),
    make("div", { class: "panels" }, lineChart(right.length ? "Texts kept (blue) and rightly placed among them (green)" : second.length ? "Texts kept (blue) and how many of them belong there, estimated (green)" : "Texts kept when weak ones are left out", lines, { marks: asked, x: "least confidence", y: "%", yFrom: 0, yTo: 100 })));
}

function fillTruth() {
  const truth = data.truth;
  if (!truth) return;
  byId("truth").hidden = false;
  const scores = truth.scores, most = Math.max(1, ...truth.counts.flat());
  byId("truth-body").append(make("p", { text: `Accuracy ${percent(scores.accuracy)}, NMI ${percent(scores.nmi)}, ARI ${percent(scores.ari)}, over ${count(scores.n_rows)} texts with a label. The labels were not used to make the groups.` }),
    make("div", { class: "wide" }, make("table", { class: "heat" }, make("thead", {}, make("tr", {}, make("th"), ...truth.clusters.map((id) => make("th", { class: "up", text: clusters[id]?.name || id })))),
      make("tbody", {}, ...truth.counts.map((row, i) => make("tr", {}, make("th", { text: truth.labels[i], title: truth.labels[i] }), ...row.map((n) => make("td", { text: n ? count(n) : "", style: n ? `background: color-mix(in srgb, var(--accent) ${Math.round(8 + 72 * n / most)}%, transparent)` : "" }))))))));
  if (truth.left_out) byId("truth-body").append(make("p", { class: "soft", text: "The largest are shown." }));
}

function fillAbout() {
  const about = data.about;
  const facts = { Texts: `${count(about.rows)} rows, ${count(about.distinct)} distinct`, Method: about.method, Encoder: about.encoder, Seed: about.seed, Version: `coterie ${about.version}` };
  for (const [name, value] of Object.entries(facts)) if (value !== null && value !== undefined) byId("facts").append(make("dt", { text: name }), make("dd", { text: String(value) }));
  byId("notes").append(...about.notes.map((text) => make("li", { text })));
  if (Object.keys(data.by ?? {}).length) byId("notes").append(make("li", { text: "In the groups, ×2 says that a value is twice as common there as in all texts; marks and dashed lines stand where it would be as common." }));
  if (!about.with_texts) byId("notes").append(make("li", { text: "Made without the texts: names and keywords are made of their words." }));
}

/* Hands: mouse, fingers and keys. */
function listen() {
  const tip = byId("tip");
  hands(map, {
    click: (i) => { if (i >= 0) toggle(shade.of[i]); else if (chosen !== null) toggle(chosen); },
    hover: (i, x, y) => {
      tip.hidden = i < 0;
      if (i < 0) return;
      const card = clusters[main.cluster[i]] ?? { id: -1, name: "In no group" }, next = clusters[runnerUp[i]];
      tip.replaceChildren(make("div", { text: points.texts ? points.texts[i] : "", dir: "auto" }), make("div", { class: "soft" }, swatch(card.id), ` ${card.name} (${percent(confidence[i] / 255)})${next ? `, next ${next.name}` : ""}`), labelled ? make("div", { class: "soft", dir: "auto", text: `label: ${labelled.named[labelled.of[i]]?.name ?? "none"}` }) : "");
      putBeside(tip, map.canvas, x, y);
    },
    escape: () => byId("clear").click(),
  });
  byId("colour-by").hidden = !labelled;
  byId("colour-by").addEventListener("change", (event) => colourBy(event.target.value === "label" ? labelled : byGroup));
  byId("search").addEventListener("input", (event) => { wanted = event.target.value.trim(); choose(); });
  byId("search").hidden = !points.texts;
  byId("clear").addEventListener("click", () => { chosen = null; wanted = ""; byId("search").value = ""; map.reset(); choose(); });
  byId("theme").addEventListener("click", () => { document.documentElement.dataset.theme = isDark() ? "light" : "dark"; repaint(); });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);
  // Paper is light, and nothing can be unfolded on it.
  const root = document.documentElement, folded = () => document.querySelectorAll("details:not([open])");
  let before = null;
  addEventListener("beforeprint", () => {
    before ??= { theme: root.dataset.theme, closed: [...folded()] };
    root.dataset.theme = "light";
    for (const each of before.closed) each.open = true;
    repaint(true);
  });
  addEventListener("afterprint", () => {
    if (!before) return;
    if (before.theme) root.dataset.theme = before.theme; else delete root.dataset.theme;
    for (const each of before.closed) each.open = false;
    before = null;
    repaint();
  });
}
/** In the colours of now; at once where no frame is to come, as in print. */
function repaint(now = false) {
  for (const each of document.querySelectorAll("[data-swatch]")) each.style.background = css(Number(each.dataset.swatch));
  for (const view of [map, ...small.map((each) => each.view)]) if (now === true) view.draw(); else view.ask();
}

fillGroups();
byId("card-list").append(...listed.filter((card) => card.size).map(cardOf));
fillTrained();
if (data.stages.length) { byId("stages").hidden = false; byId("stage-panels").append(...data.stages.map(panel)); }
fillCurves();
fillChoice();
fillCoverage();
fillTruth();
fillAbout();
fillHeader();
listen();
map.ask();
document.documentElement.dataset.ready = "true";
