"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const listed = data.clusters;
/** By id, without a name where a cluster was merged away; read by the map. */
const clusters = Array.from({ length: data.n_ids }, (_, id) => ({ id, name: "", size: 0 }));
for (const each of listed) clusters[each.id] = each;
const points = data.points;
const main = { x: unpack(points.x, Int16Array), y: unpack(points.y, Int16Array), cluster: unpack(points.cluster, Int32Array) };
const confidence = unpack(points.confidence, Uint8Array), runnerUp = unpack(points.runner_up, Int32Array);
const map = new PointMap(byId("points"), main, true);
/** The small maps, each with the points of the large map that it shows. */
const panels = [];
let chosen = null, query = "";
/** What colours the map and fills the list beside it: the clusters or, where they were given, the labels. */
const byCluster = { of: main.cluster, named: clusters, list: data.about.noise ? [...listed, { id: -1, name: "No cluster", size: data.about.noise }] : listed };
const byLabel = points.label ? { of: unpack(points.label, Int32Array), named: data.labels } : null;
if (byLabel) byLabel.list = data.labels.map((each, id) => ({ id, ...each }));
let coloring = byCluster;

/** Show the points that are in the chosen cluster and contain the searched words. */
function update() {
  const words = query.toLowerCase();
  const any = chosen !== null || words;
  let found = 0;
  const shown = any ? new Uint8Array(points.count) : null;
  if (any) for (let i = 0; i < points.count; i++)
    if ((chosen === null || coloring.of[i] === chosen) && (!words || lowerCase()[i].includes(words))) { shown[i] = 1; found++; }
  map.shown = shown;
  map.only = chosen === null ? null : new Set([chosen]);
  map.ask();
  for (const { view, of } of panels) {
    view.shown = shown ? of.map((i) => shown[i]) : null;
    view.ask();
  }
  for (const button of byId("clusters").querySelectorAll("button"))
    button.setAttribute("aria-pressed", String(Number(button.dataset.id) === chosen));
  byId("clear").hidden = !any;
  byId("found").textContent = any ? `${count(found)} of ${count(points.count)} texts` : "";
}
let lowerCaseTexts = null;
function lowerCase() { return (lowerCaseTexts ??= (points.texts ?? []).map((text) => text.toLowerCase())); }
function toggle(id) { chosen = chosen === id ? null : id; update(); }

function fillHeader() {
  byId("title").textContent = data.about.title;
  byId("headline").append(...data.headline.map((text) => make("p", { text })));
  for (const section of document.querySelectorAll("section"))
    if (!section.hidden) byId("nav").append(make("a", { href: `#${section.id}`, text: section.dataset.title }));
}

/** Fill the list beside the map. */
function fillList() {
  byId("clusters").setAttribute("aria-label", coloring === byLabel ? "Labels" : "Clusters");
  byId("clusters").replaceChildren(...coloring.list.map((each) => make("li", {}, make("button", { type: "button", "data-id": each.id, "aria-pressed": "false", onclick: () => toggle(each.id) },
    swatch(each.id), make("span", { text: each.name, dir: "auto" }), make("span", { class: "count", text: count(each.size) })))));
}

/** Colour the map, and fill the list beside it, by cluster or by label. */
function colourBy(next) {
  coloring = next;
  map.coloring = next === byCluster ? null : next;
  map._medians = null;
  chosen = null;
  fillList();
  update();
}

function cardOf(card) {
  const measures = [["confidence", card.confidence, data.calibrated ? "Estimated share of its texts that are in the right cluster" : "Mean margin to the runner-up cluster", 0],
    ["stability", card.stability, "How much of the cluster reappears when the clustering is repeated on samples of the texts; red: below 60 %", 0.6],
    ["cohesion", card.cohesion, "Mean cosine between its texts and their mean: 100 % when all texts point the same way", 0],
    // Beyond a right angle two clusters have nothing in common, so more than 100 % would mean nothing.
    ["separation", card.separation === null ? null : Math.min(1, card.separation), "Distance to the nearest other cluster: near 0 % the two are almost the same, at 100 % they have nothing in common", 0]];
  const shown = measures.filter(([, value]) => value !== null && value !== undefined).map(([name, value, title, least]) =>
    make("div", { title, class: value < least ? "weak" : "" }, make("b", { text: percent(value) }), name));
  const made = make("article", { class: "card", id: `cluster-${card.id}` },
    make("header", {}, swatch(card.id), make("h3", { text: card.name, title: card.keyword_name ? `Keywords: ${card.keyword_name}` : null }), make("span", { class: "count", text: `${count(card.size)} · ${percent(card.share)}` })),
    ...(card.label ? [make("p", { class: "main-label", text: `Most frequent label: ${card.label.name} (${percent(card.label.share)})`, dir: "auto", title: "Of the given labels, which were not used for clustering" })] : []),
    make("ul", { class: "words" }, ...card.keywords.map((text) => make("li", { text }))),
    make("ul", { class: "texts" }, ...card.representatives.map((text) => make("li", { text, dir: "auto" }))),
    make("div", { class: "measures" }, ...shown),
    ...Object.entries(card.by ?? {}).map(([column, counts]) => (counts.kind === "dates" ? dateBars : valueBars)(column, counts)));
  if (card.borderline.length)
    made.append(make("details", {}, make("summary", { text: "Borderline texts: low confidence" }), make("ul", { class: "texts" }, ...card.borderline.map((each) =>
      make("li", { dir: "auto" }, `${each.text} `, make("span", { class: "soft", text: clusters[each.runner_up] ? `runner-up: ${clusters[each.runner_up].name}` : "" }))))));
  for (const topic of card.topics ?? [])
    made.append(make("p", { class: "soft", text: `Topic (${percent(topic.share)}): ${topic.words.slice(0, 6).join(", ")}` }));
  const near = card.nearest.filter((id) => clusters[id]).map((id) => clusters[id].name);
  const facts = [near.length ? `Nearest clusters: ${near.join("; ")}.` : "", card.duplicates > 0.005 ? `${percent(card.duplicates)} of its texts repeat another one.` : ""];
  if (facts.join("")) made.append(make("p", { class: "soft", text: facts.join(" ").trim() }));
  return made;
}

/** A small map. */
function panel(content) {
  const canvas = make("canvas", { role: "img", "aria-label": content.title });
  const of = unpack(content.points, Int32Array);
  const view = new PointMap(canvas, { x: unpack(content.x, Int16Array), y: unpack(content.y, Int16Array), cluster: unpack(content.cluster, Int32Array) });
  panels.push({ view, of: Uint32Array.from(of) });
  return make("figure", {}, make("figcaption", { text: content.title }), canvas);
}

function fillTrained() {
  const trained = data.trained;
  if (!trained) return;
  byId("trained").hidden = false;
  const body = byId("trained-body");
  body.append(make("p", { text: trained.verdict }));
  if (trained.criteria.length)
    body.append(make("div", { class: "wide" }, make("table", {}, make("thead", {}, make("tr", {}, ...["Label-free criterion", "before", "after"].map((text) => make("th", { text })))),
      make("tbody", {}, ...trained.criteria.map((each) => make("tr", {}, make("td", { text: each.name }), make("td", { text: each.before.toFixed(3) }), make("td", { text: each.after.toFixed(3) })))))));
  if (trained.panels.length)
    body.append(make("div", { class: "panels" }, panel({ ...trained.panels[0], title: "Before: pretrained encoder" }), panel({ ...trained.panels[1], title: "After fine-tuning" })));
  const changes = trained.changes, name = (id) => trained.names?.[id] || `cluster ${id}`;
  body.append(make("p", { text: `${percent(changes.agreement)} of the texts stayed in the same cluster (clusters before and after are matched one to one).` }));
  const listed = (ids) => ids.map((id) => `“${name(id)}”`).join(", ");
  // The largest part of a cluster keeps its name.
  const parts = (each) => { const others = each.after.filter((id) => !each.before.includes(id)); return others.length < each.after.length ? `: a large part of it is now in ${listed(others)}` : ` into ${listed(each.after)}`; };
  const sentences = { split: (each) => `${listed(each.before)} was split${parts(each)}`, merged: (each) => `${listed(each.before)} were merged into ${listed(each.after)}`,
    new: (each) => `${listed(each.after)} is new`, gone: (each) => `${listed(each.before)} no longer exists` };
  const events = (changes.changes ?? []).filter((each) => sentences[each.kind]).slice(0, 12);
  if (events.length) body.append(make("h3", { text: "Splits and mergers" }), make("ul", { class: "texts" }, ...events.map((each) => make("li", { text: `${sentences[each.kind](each)}.` }))));
  const moves = (changes.moves ?? []).slice(0, 8);
  if (moves.length) body.append(make("h3", { text: "Largest moves" }), make("ul", { class: "texts" }, ...moves.map((move) =>
    make("li", {}, `${count(move.rows)} texts from “${name(move.before)}” to “${name(move.after)}”`, move.examples.length ? make("ul", { class: "texts soft" }, ...move.examples.map((text) => make("li", { text, dir: "auto" }))) : ""))));
}

function fillCurves() {
  if (!data.loss_curves) return;
  byId("curves").hidden = false;
  const many = data.loss_curves.stages.length > 1;
  const marks = many ? data.loss_curves.stages.map((stage) => ({ at: stage.step, name: stage.name })) : [];
  for (const [name, line] of Object.entries(data.loss_curves.terms)) byId("curve-panels").append(lineChart(name.replaceAll("_", " "), [{ points: line }], { marks, x: "step" }));
}

/** The criteria for every number of clusters that was tried. */
function fillChoice() {
  const choice = data.choice;
  if (!choice) return;
  byId("choice").hidden = false;
  byId("choice-body").append(...choice.why.map((text) => make("p", { text: `${text[0].toUpperCase()}${text.slice(1)}.` })));
  const titles = { score: "score (decides)", information: "information on neighbours", stability: "stability under resampling", silhouette: "silhouette", neighbours: "semantic neighbours in one cluster", words: "lexical neighbours in one cluster", gap: "gap" };
  for (const [name, title] of Object.entries(titles)) {
    const line = choice.candidates.filter((each) => Number.isFinite(each[name])).map((each) => [each.k, each[name]]);
    const used = name === "score" || name in choice.weights;
    if (line.length > 1) byId("choice-panels").append(lineChart(used ? title : `${title} (not used)`, [{ points: line }], { marks: [{ at: choice.k, name: String(choice.k) }], x: "clusters" }));
  }
}

function fillCoverage() {
  const line = (key) => data.coverage.filter((point) => point[key] !== undefined).map((point) => [point.threshold, 100 * point[key]]);
  const accuracy = line("accuracy"), expected = data.calibrated ? line("expected") : [];
  const second = accuracy.length ? accuracy : expected;
  const lines = [{ points: line("share") }];
  if (second.length) lines.push({ points: second, class: "other" });
  const marks = data.about.abstained ? [{ at: data.about.min_confidence, name: "requested" }] : [];
  const half = data.coverage.filter((point) => point.share >= 0.5).at(-1);
  const meaning = data.calibrated
    ? "Confidence is the estimated probability that a text is in the right cluster: of the texts with a confidence of 70 %, about 70 % share the main subject of their cluster. The estimate uses the margins and the neighbours of the texts, and no labels."
    : "Confidence is the margin to the runner-up cluster. It is not a probability.";
  const title = accuracy.length ? "Texts at or above the threshold (blue) and their accuracy (green)" : second.length ? "Texts at or above the threshold (blue) and their estimated accuracy (green)" : "Texts at or above the threshold";
  byId("coverage").append(make("p", { text: `Half of the texts have a confidence of at least ${percent(half.threshold)}. ${meaning}` }),
    make("div", { class: "panels" }, lineChart(title, lines, { marks, x: "confidence threshold", y: "%", yFrom: 0, yTo: 100 })));
}

function fillLabels() {
  const table = data.labels_table;
  if (!table) return;
  byId("labels").hidden = false;
  const scores = table.scores, largest = Math.max(1, ...table.counts.flat());
  byId("labels-body").append(make("p", { text: `Accuracy ${percent(scores.accuracy)}, NMI ${percent(scores.nmi)}, ARI ${percent(scores.ari)}, over ${count(scores.n_rows)} texts with a label. The labels were not used for clustering.` }),
    make("div", { class: "wide" }, make("table", { class: "heat" }, make("thead", {}, make("tr", {}, make("th"), ...table.clusters.map((id) => make("th", { class: "up", text: clusters[id]?.name || id })))),
      make("tbody", {}, ...table.counts.map((row, i) => make("tr", {}, make("th", { text: table.labels[i], title: table.labels[i] }), ...row.map((n) => make("td", { text: n ? count(n) : "", style: n ? `background: color-mix(in srgb, var(--accent) ${Math.round(8 + 72 * n / largest)}%, transparent)` : "" }))))))));
  if (table.truncated) byId("labels-body").append(make("p", { class: "soft", text: "The table shows the largest labels and clusters only." }));
}

function fillAbout() {
  const about = data.about;
  const facts = { Texts: `${count(about.rows)} rows, ${count(about.distinct)} distinct`, Method: about.method, Encoder: about.encoder, Seed: about.seed, Version: `coterie ${about.version}` };
  for (const [name, value] of Object.entries(facts)) if (value !== null && value !== undefined) byId("facts").append(make("dt", { text: name }), make("dd", { text: String(value) }));
  byId("notes").append(...about.notes.map((text) => make("li", { text })));
  if (Object.keys(data.by ?? {}).length) byId("notes").append(make("li", { text: "In the clusters, ×2 means that a value is twice as common there as in all texts. Vertical marks and dashed lines show where it would be equally common." }));
  if (!about.with_texts) byId("notes").append(make("li", { text: "This report contains no texts. Names and keywords are made of their words." }));
}

/** React to mouse, touch and keys. */
function listen() {
  const tip = byId("tip");
  listenToMap(map, {
    click: (i) => { if (i >= 0) toggle(coloring.of[i]); else if (chosen !== null) toggle(chosen); },
    hover: (i, x, y) => {
      tip.hidden = i < 0;
      if (i < 0) return;
      const card = clusters[main.cluster[i]] ?? { id: -1, name: "No cluster" }, next = clusters[runnerUp[i]];
      tip.replaceChildren(make("div", { text: points.texts ? points.texts[i] : "", dir: "auto" }), make("div", { class: "soft" }, swatch(card.id), ` ${card.name} (${percent(confidence[i] / 255)})${next ? `, runner-up: ${next.name}` : ""}`), byLabel ? make("div", { class: "soft", dir: "auto", text: `label: ${byLabel.named[byLabel.of[i]]?.name ?? "none"}` }) : "");
      placeTooltip(tip, map.canvas, x, y);
    },
    escape: () => byId("clear").click(),
  });
  byId("colour-by").hidden = !byLabel;
  byId("colour-by").addEventListener("change", (event) => colourBy(event.target.value === "label" ? byLabel : byCluster));
  byId("search").addEventListener("input", (event) => { query = event.target.value.trim(); update(); });
  byId("search").hidden = !points.texts;
  byId("clear").addEventListener("click", () => { chosen = null; query = ""; byId("search").value = ""; map.reset(); update(); });
  byId("theme").addEventListener("click", () => { document.documentElement.dataset.theme = isDark() ? "light" : "dark"; repaint(); });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);
  // Print in light colours, with everything unfolded.
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
/** Repaint in the current colours; `now`: at once instead of in the next frame, for printing. */
function repaint(now = false) {
  for (const each of document.querySelectorAll("[data-swatch]")) each.style.background = css(Number(each.dataset.swatch));
  for (const view of [map, ...panels.map((each) => each.view)]) if (now === true) view.draw(); else view.ask();
}

fillList();
byId("card-list").append(...listed.filter((card) => card.size).map(cardOf));
fillTrained();
if (data.snapshots.length) { byId("snapshots").hidden = false; byId("snapshot-panels").append(...data.snapshots.map(panel)); }
fillCurves();
fillChoice();
fillCoverage();
fillLabels();
fillAbout();
fillHeader();
listen();
map.ask();
document.documentElement.dataset.ready = "true";
