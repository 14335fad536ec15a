"use strict";
/* The explorer's page: it shows what the server returns; every edit is sent to the server, which returns the new clusters. */
const NOISE = -1, NEW = "new", SHOWN = 50;
let run = null;
/** Lines of the edit log that this page knows of. */
let logLines = 0;
/** By id, without a name where a cluster was merged away; read by the map. */
let clusters = [];
let listed = [];
let map = null, main = null, confidence = null, rowOf = null;
const view = { chosen: null, query: "", order: "high", begin: 0, total: 0 };
const selected = new Map();

/** Request a path of the server; with a body as POST. */
async function ask(path, sent) {
  const options = sent === undefined ? {} : { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(sent) };
  let answer;
  try {
    answer = await fetch(path, options);
  } catch {
    throw new Error("The explorer does not respond. If it was stopped, start it again with `coterie explore`; all edits so far are saved.");
  }
  const content = await answer.json();
  if (!answer.ok) throw Object.assign(new Error(content.error ?? `The explorer failed with status ${answer.status}; its terminal shows why.`), { status: answer.status });
  return content;
}

/** Show a message; `isProgress` for one that is not an error. */
function say(text, isProgress = false) {
  byId("message").hidden = !text;
  byId("message").textContent = text;
  byId("message").classList.toggle("fine", isProgress);
}

/** Run something that may fail, and show its progress or its error. */
async function attempt(action, progress = "") {
  say(progress, true);
  document.body.setAttribute("aria-busy", "true");
  try {
    await action();
    if (byId("message").textContent === progress) say("");
  } catch (error) {
    say(error.message);
    if (error.status === 409) { const current = await ask("/api/run"); adopt(current); await refresh(); }
  } finally {
    document.body.removeAttribute("aria-busy");
  }
}

const nameOf = (id) => (id === NOISE ? "No cluster" : clusters[id]?.name ?? `cluster ${id}`);

/** Take over the clusters that the server returned. */
function adopt(answer) {
  logLines = answer.log_lines;
  listed = answer.clusters;
  clusters = Array.from({ length: answer.next_id }, (_, id) => ({ id, name: "" }));
  for (const each of listed) clusters[each.id] = each;
  main.cluster = unpack(answer.cluster, Int32Array);
  map.points = main;
  map._medians = null;
  byId("undo").disabled = !answer.can_undo;
  byId("undo").title = answer.last ? `Undo: ${answer.last}` : "";
  byId("redo").disabled = !answer.can_redo;
  run.noise = answer.noise;
  if (view.chosen !== null && view.chosen !== NOISE && !clusters[view.chosen]?.name) view.chosen = null;
  if (answer.notes.length) say(answer.notes.join(" "));
}

function fillList() {
  byId("cluster-count").textContent = `${count(listed.length)}`;
  const entry = (id, name, size) => make("li", {}, make("button", { type: "button", "data-id": id, onclick: () => choose(id) }, swatch(id), make("span", { text: name }), make("span", { class: "count", text: count(size) })));
  const entries = listed.map((each) => entry(each.id, each.name, each.size));
  if (run.noise) entries.push(entry(NOISE, "No cluster", run.noise));
  byId("clusters").replaceChildren(...entries);
}

/** Fill a select element with the clusters, but for one. */
function fillOptions(select, first, without, more = []) {
  const options = [make("option", { value: "", text: first }), ...more];
  for (const each of listed) if (each.id !== without) options.push(make("option", { value: each.id, text: each.name }));
  select.replaceChildren(...options);
}

function fillCluster() {
  const id = view.chosen, cluster = clusters[id];
  byId("cluster-side").hidden = id === null;
  byId("list-side").hidden = id !== null;
  byId("texts-title").textContent = view.query ? `Texts that contain “${view.query}”` : "Texts";
  fillOptions(byId("move"), "…", id, [make("option", { value: NEW, text: "a new cluster" }), make("option", { value: NOISE, text: "noise" })]);
  if (id === null) return;
  byId("cluster-swatch").replaceChildren(swatch(id));
  byId("name").value = nameOf(id);
  for (const part of ["merge", "split", "noise", "name"]) byId(part).disabled = id === NOISE;
  byId("cluster-facts").textContent = id === NOISE ? `${count(run.noise)} texts are in no cluster.` : `${count(cluster.size)} texts, ${percent(cluster.size / run.rows)} of all; mean confidence ${percent(cluster.confidence)}.`;
  byId("words").replaceChildren(...(cluster?.keywords ?? []).map((text) => make("li", { text })));
  fillOptions(byId("merge"), "…", id);
  byId("split").value = "";
}

function factsOf(each) {
  const runnerUp = each.runner_up && each.runner_up !== each.name ? `runner-up: ${each.runner_up}` : "";
  return [view.chosen === null ? each.name : "", each.times > 1 ? `${count(each.times)} times` : "", each.moved ? "moved here by hand" : runnerUp].filter(Boolean).join(" · ");
}

/** Add the runner-up of texts that are not on the map: they must be embedded first, so the list does not wait for it. */
async function addRunnerUps(texts) {
  const open = texts.filter((each) => !each.mapped && each.cluster !== NOISE && !each.moved);
  if (!open.length) return;
  const found = (await ask(`/api/runner-ups?rows=${open.map((each) => each.row).join(",")}`).catch(() => null))?.runner_ups ?? {};
  for (const each of open) {
    const line = byId("texts").querySelector(`li[data-row="${each.row}"] .facts`);
    if (line && found[each.row]) line.textContent = factsOf({ ...each, runner_up: found[each.row] });
  }
}

function textLine(each) {
  const box = make("input", { type: "checkbox", "aria-label": "Select this text", onchange: (event) => { if (event.target.checked) selected.set(each.row, each); else selected.delete(each.row); fillSelection(); } });
  box.checked = selected.has(each.row);
  return make("li", { "data-row": each.row }, box, make("div", {}, make("span", { class: "text", text: each.text, dir: "auto" }), make("span", { class: "facts", text: factsOf(each) })), make("span", { class: "confidence", title: run.calibrated ? "Confidence: the estimated probability that the text belongs in this cluster" : "Confidence: the margin to the runner-up cluster", text: percent(each.confidence) }));
}

function fillSelection() {
  byId("selection").hidden = !selected.size;
  byId("selected").textContent = `${count(selected.size)} selected`;
}

/** Load the texts that match the chosen cluster and the search, and highlight their points. */
async function refresh(more = false) {
  view.begin = more ? view.begin + SHOWN : 0;
  if (!more) { selected.clear(); fillSelection(); }
  fillList();
  fillCluster();
  const asked = new URLSearchParams({ query: view.query, lowest_first: view.order === "low", begin: view.begin, most: SHOWN });
  if (view.chosen !== null) asked.set("cluster", view.chosen);
  const request = `${view.chosen}/${view.query}/${view.order}`;
  refresh.latest = request;
  const answer = await ask(`/api/texts?${asked}`);
  let shown = null;
  if (view.query) shown = unpack((await ask(`/api/matching?${asked}`)).points, Uint8Array);
  else if (view.chosen !== null) shown = Uint8Array.from(main.cluster, (id) => (id === view.chosen ? 1 : 0));
  // A later request has replaced this one.
  if (refresh.latest !== request) return;
  view.total = answer.total;
  const lines = answer.texts.map(textLine);
  if (more) byId("texts").append(...lines); else byId("texts").replaceChildren(...lines);
  byId("more").hidden = view.begin + SHOWN >= view.total;
  byId("found").textContent = view.query || view.chosen !== null ? `${count(view.total)} of ${count(run.distinct)} distinct texts` : "";
  addRunnerUps(answer.texts);
  map.shown = shown;
  map.only = view.chosen === null ? null : new Set([view.chosen]);
  map.ask();
}

function choose(id) {
  view.chosen = id;
  return attempt(async () => {
    await refresh();
    byId("texts-side").scrollTop = 0;
    // On a narrow screen the clusters are below the map.
    if (id !== null && matchMedia("(max-width: 760px)").matches) byId("cluster-side").scrollIntoView({ behavior: "smooth" });
  });
}

/** Send an edit and show the clusters that result. */
function edit(change, progress = "") {
  return attempt(async () => {
    adopt(await ask("/api/edits", { ...change, log_lines: logLines }));
    await refresh();
  }, progress);
}

/** A new text with its cluster, the words that matter and similar texts of the run. */
function assignedEntry(each) {
  const largest = Math.max(1e-4, ...each.words.map((word) => word.importance));
  const text = make("p", { dir: "auto", class: "text" });
  if (!each.words.length) text.append(each.text);
  for (const word of each.words) {
    const weight = Math.max(0, word.importance) / largest;
    text.append(weight > 0.2 ? make("mark", { style: `--weight:${weight.toFixed(2)}`, title: `Without this word, the probability of the cluster is ${(100 * word.importance).toFixed(0)} points lower`, text: word.word }) : word.word, " ");
  }
  if (each.rest) text.append(each.rest);
  const where = make("p", {}, "→ ", swatch(each.cluster), " ", make("button", { type: "button", text: each.name, onclick: () => choose(each.cluster) }),
    make("span", { class: "facts", text: each.by_hand ? " moved there by hand" : ` confidence ${percent(each.confidence)}${each.runner_up ? `, runner-up: ${each.runner_up}` : ""}` }));
  const similar = each.examples.map((other) => make("li", { class: "facts", dir: "auto", text: `${other.text} (${other.name}, cosine ${other.cosine})` }));
  return make("div", { class: "assigned" }, text, where, make("ul", { class: "texts" }, ...similar));
}

function listen() {
  const tip = byId("tip");
  let pointed = -1;
  listenToMap(map, {
    click: (i) => { if (i >= 0) choose(main.cluster[i]); else if (view.chosen !== null) choose(null); },
    hover: async (i, x, y) => {
      pointed = i;
      tip.hidden = i < 0;
      if (i < 0) return;
      const facts = make("div", { class: "soft" }, swatch(main.cluster[i]), ` ${nameOf(main.cluster[i])} (${percent(confidence[i] / 255)})`);
      tip.replaceChildren(facts);
      placeTooltip(tip, map.canvas, x, y);
      const each = await ask(`/api/text/${rowOf[i]}`).catch(() => null);
      if (pointed !== i || !each) return;
      tip.replaceChildren(make("div", { text: each.text.slice(0, 300), dir: "auto" }), facts);
      placeTooltip(tip, map.canvas, x, y);
    },
    escape: () => { view.query = byId("search").value = ""; choose(null); },
  });
  let waiting = 0;
  byId("search").addEventListener("input", (event) => {
    view.query = event.target.value.trim();
    clearTimeout(waiting);
    waiting = setTimeout(() => attempt(() => refresh()), 120);
  });
  byId("order").addEventListener("change", (event) => { view.order = event.target.value; attempt(() => refresh()); });
  byId("more").addEventListener("click", () => attempt(() => refresh(true)));
  byId("back").addEventListener("click", () => choose(null));
  byId("rename").addEventListener("submit", (event) => { event.preventDefault(); edit({ kind: "rename", clusters: [view.chosen], name: byId("name").value }); });
  // Choosing an option must not act by itself: with the keyboard, one passes other options on the way.
  const onSubmit = (name, act) => byId(`${name}-form`).addEventListener("submit", (event) => {
    event.preventDefault();
    if (byId(name).value !== "") act(byId(name).value, view.chosen);
    else byId(name).focus();
  });
  onSubmit("merge", (to, from) => { view.chosen = Number(to); edit({ kind: "merge", clusters: [from], to: Number(to) }); });
  onSubmit("split", (into, from) => { view.chosen = null; edit({ kind: "split", clusters: [from], into: Number(into) }, "Splitting …"); });
  byId("noise").addEventListener("click", () => { const from = view.chosen; view.chosen = null; edit({ kind: "noise", clusters: [from] }); });
  onSubmit("move", (to) => {
    const rows = [...selected.keys()];
    if (to === NEW) edit({ kind: "separate", rows }, "Making a new cluster …");
    else edit({ kind: "move", rows, to: Number(to) });
  });
  byId("unselect").addEventListener("click", () => { selected.clear(); for (const box of byId("texts").querySelectorAll("input")) box.checked = false; fillSelection(); });
  byId("undo").addEventListener("click", () => edit({ kind: "undo" }));
  byId("redo").addEventListener("click", () => edit({ kind: "redo" }));
  onSubmit("export", (form) => make("a", { href: `/api/export/${form}`, download: "" }).click());
  byId("try").addEventListener("submit", (event) => {
    event.preventDefault();
    attempt(async () => {
      const texts = byId("new-texts").value.split("\n").filter((line) => line.trim());
      byId("assigned").replaceChildren(...(await ask("/api/assign", { texts })).assigned.map(assignedEntry));
    }, "Assigning …");
  });
  document.addEventListener("keydown", (event) => {
    if (!(event.ctrlKey || event.metaKey) || event.key.toLowerCase() !== "z" || /^(INPUT|TEXTAREA)$/.test(event.target.tagName)) return;
    event.preventDefault();
    byId(event.shiftKey ? "redo" : "undo").click();
  });
  byId("theme").addEventListener("click", () => { document.documentElement.dataset.theme = isDark() ? "light" : "dark"; repaint(); });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);
}

function repaint() {
  for (const each of document.querySelectorAll("[data-swatch]")) each.style.background = css(Number(each.dataset.swatch));
  map.ask();
}

attempt(async () => {
  run = await ask("/api/run");
  document.title = `${run.title}: Coterie explorer`;
  byId("title").textContent = run.title;
  const points = run.points;
  main = { x: unpack(points.x, Int16Array), y: unpack(points.y, Int16Array), cluster: unpack(run.cluster, Int32Array) };
  confidence = unpack(points.confidence, Uint8Array);
  rowOf = unpack(points.row, Int32Array);
  map = new PointMap(byId("points"), main, true);
  byId("hint").textContent = `Each point is a text; similar texts are close. Click a point or a cluster.${points.count < run.distinct ? ` The map shows ${count(points.count)} of ${count(run.distinct)} texts; lists and search cover all.` : ""}`;
  byId("verdict").hidden = !run.verdict;
  byId("verdict").textContent = run.verdict?.sentence ?? "";
  byId("verdict").title = run.verdict?.details ?? "";
  adopt(run);
  listen();
  await refresh();
  document.documentElement.dataset.ready = "true";
});
