"use strict";
/* The explorer's page: what is shown comes from the server; every change goes there and comes back. */
const NOISE = -1, NEW = "new", SHOWN = 50;
let run = null, seen = 0;
/** By id, with holes where clusters are gone; what the map reads. */
let clusters = [];
let listed = [];
let map = null, main = null, confidence = null, rowOf = null;
const view = { chosen: null, query: "", order: "sure", begin: 0, total: 0 };
const selected = new Map();

async function ask(path, sent) {
  const options = sent === undefined ? {} : { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(sent) };
  let answer;
  try {
    answer = await fetch(path, options);
  } catch {
    throw new Error("The explorer does not answer: was it ended? What was done before is kept.");
  }
  const told = await answer.json();
  if (!answer.ok) throw Object.assign(new Error(told.error ?? "That did not work."), { status: answer.status });
  return told;
}

function say(text, fine = false) {
  byId("message").hidden = !text;
  byId("message").textContent = text;
  byId("message").classList.toggle("fine", fine);
}

/** Run something that may fail; while it lasts, the page says so. */
async function attempt(what, doing = "") {
  say(doing, true);
  document.body.setAttribute("aria-busy", "true");
  try {
    await what();
    if (byId("message").textContent === doing) say("");
  } catch (error) {
    say(error.message);
    if (error.status === 409) { const fresh = await ask("/api/run"); adopt(fresh); await refresh(); }
  } finally {
    document.body.removeAttribute("aria-busy");
  }
}

const nameOf = (id) => (id === NOISE ? "In no group" : clusters[id]?.name ?? `group ${id}`);

/** Take over the clusters as the server tells them. */
function adopt(told) {
  seen = told.seen;
  listed = told.clusters;
  clusters = Array.from({ length: told.next_id }, (_, id) => ({ id, name: "" }));
  for (const each of listed) clusters[each.id] = each;
  main.cluster = unpack(told.cluster, Int32Array);
  map.points = main;
  map._middles = null;
  byId("undo").disabled = !told.can_undo;
  byId("undo").title = told.last ? `Take back: ${told.last}` : "";
  byId("redo").disabled = !told.can_redo;
  run.noise = told.noise;
  if (view.chosen !== null && view.chosen !== NOISE && !clusters[view.chosen]?.name) view.chosen = null;
  if (told.notes.length) say(told.notes.join(" "));
}

function fillGroups() {
  byId("group-count").textContent = `${count(listed.length)}`;
  const entry = (id, name, size) => make("li", {}, make("button", { type: "button", "data-id": id, onclick: () => choose(id) }, swatch(id), make("span", { text: name }), make("span", { class: "count", text: count(size) })));
  const entries = listed.map((each) => entry(each.id, each.name, each.size));
  if (run.noise) entries.push(entry(NOISE, "In no group", run.noise));
  byId("groups").replaceChildren(...entries);
}

function fillChoices(select, first, without, more = []) {
  const options = [make("option", { value: "", text: first }), ...more];
  for (const each of listed) if (each.id !== without) options.push(make("option", { value: each.id, text: each.name }));
  select.replaceChildren(...options);
}

function fillGroup() {
  const id = view.chosen, group = clusters[id];
  byId("group-side").hidden = id === null;
  byId("list-side").hidden = id !== null;
  byId("texts-title").textContent = view.query ? `Texts with “${view.query}”` : "Texts";
  fillChoices(byId("move"), "…", id, [make("option", { value: NEW, text: "a new group" }), make("option", { value: NOISE, text: "noise" })]);
  if (id === null) return;
  byId("group-swatch").replaceChildren(swatch(id));
  byId("name").value = nameOf(id);
  for (const part of ["merge", "split", "noise", "name"]) byId(part).disabled = id === NOISE;
  byId("group-facts").textContent = id === NOISE ? `${count(run.noise)} texts that are in no group.` : `${count(group.size)} texts, ${percent(group.size / run.rows)} of all; mean confidence ${percent(group.confidence)}.`;
  byId("words").replaceChildren(...(group?.keywords ?? []).map((text) => make("li", { text })));
  fillChoices(byId("merge"), "…", id);
  byId("split").value = "";
}

function factsOf(each) {
  const next = each.runner_up && each.runner_up !== each.name ? `next: ${each.runner_up}` : "";
  return [view.chosen === null ? each.name : "", each.times > 1 ? `${count(each.times)} times` : "", each.moved ? "put here by hand" : next].filter(Boolean).join(" · ");
}

/** Texts that are not on the map must be embedded to say which group is next: the list does not wait for it. */
async function tellNext(texts) {
  const open = texts.filter((each) => !each.mapped && each.cluster !== NOISE && !each.moved);
  if (!open.length) return;
  const told = (await ask(`/api/next?rows=${open.map((each) => each.row).join(",")}`).catch(() => null))?.next ?? {};
  for (const each of open) {
    const line = byId("texts").querySelector(`li[data-row="${each.row}"] .told`);
    if (line && told[each.row]) line.textContent = factsOf({ ...each, runner_up: told[each.row] });
  }
}

function textLine(each) {
  const box = make("input", { type: "checkbox", "aria-label": "Choose this text", onchange: (event) => { if (event.target.checked) selected.set(each.row, each); else selected.delete(each.row); fillSelection(); } });
  box.checked = selected.has(each.row);
  return make("li", { "data-row": each.row }, box, make("div", {}, make("span", { class: "words-of", text: each.text, dir: "auto" }), make("span", { class: "told", text: factsOf(each) })), make("span", { class: "sure", title: run.calibrated ? "confidence: the chance that it belongs here, estimated" : "confidence: how far its group is ahead of the next", text: percent(each.confidence) }));
}

function fillSelection() {
  byId("selection").hidden = !selected.size;
  byId("selected").textContent = `${count(selected.size)} chosen`;
}

/** The list of texts, and which points are strong, for what is chosen and searched for. */
async function refresh(more = false) {
  view.begin = more ? view.begin + SHOWN : 0;
  if (!more) { selected.clear(); fillSelection(); }
  fillGroups();
  fillGroup();
  const asked = new URLSearchParams({ query: view.query, weak_first: view.order === "weak", begin: view.begin, most: SHOWN });
  if (view.chosen !== null) asked.set("cluster", view.chosen);
  const now = `${view.chosen}/${view.query}/${view.order}`;
  refresh.now = now;
  const answer = await ask(`/api/texts?${asked}`);
  let shown = null;
  if (view.query) shown = unpack((await ask(`/api/matching?${asked}`)).points, Uint8Array);
  else if (view.chosen !== null) shown = Uint8Array.from(main.cluster, (id) => (id === view.chosen ? 1 : 0));
  // An answer that came after the next question is dropped.
  if (refresh.now !== now) return;
  view.total = answer.total;
  const lines = answer.texts.map(textLine);
  if (more) byId("texts").append(...lines); else byId("texts").replaceChildren(...lines);
  byId("more").hidden = view.begin + SHOWN >= view.total;
  byId("found").textContent = view.query || view.chosen !== null ? `${count(view.total)} of ${count(run.distinct)} different texts` : "";
  tellNext(answer.texts);
  map.shown = shown;
  map.only = view.chosen === null ? null : new Set([view.chosen]);
  map.ask();
}

function choose(id) {
  view.chosen = id;
  return attempt(async () => {
    await refresh();
    byId("texts-side").scrollTop = 0;
    // On a narrow screen the groups lie below the map.
    if (id !== null && matchMedia("(max-width: 760px)").matches) byId("group-side").scrollIntoView({ behavior: "smooth" });
  });
}

function edit(asked, doing = "") {
  return attempt(async () => {
    adopt(await ask("/api/edits", { ...asked, seen }));
    await refresh();
  }, doing);
}

function placedEntry(each) {
  const most = Math.max(1e-4, ...each.words.map((word) => word.matters));
  const text = make("p", { dir: "auto", class: "words-of" });
  if (!each.words.length) text.append(each.text);
  for (const word of each.words) {
    const much = Math.max(0, word.matters) / most;
    text.append(much > 0.2 ? make("mark", { style: `--much:${much.toFixed(2)}`, title: `without it: ${percent(word.matters)} less`, text: word.word }) : word.word, " ");
  }
  if (each.rest) text.append(each.rest);
  const where = make("p", {}, "→ ", swatch(each.cluster), " ", make("button", { type: "button", text: each.name, onclick: () => choose(each.cluster) }),
    make("span", { class: "told", text: each.by_hand ? " put there by hand" : ` confidence ${percent(each.confidence)}${each.runner_up ? `, next ${each.runner_up}` : ""}` }));
  const alike = each.examples.map((other) => make("li", { class: "told", dir: "auto", text: `${other.text} (${other.name}, cosine ${other.cosine})` }));
  return make("div", { class: "placed" }, text, where, make("ul", { class: "texts" }, ...alike));
}

function listen() {
  const tip = byId("tip");
  let pointed = -1;
  hands(map, {
    click: (i) => { if (i >= 0) choose(main.cluster[i]); else if (view.chosen !== null) choose(null); },
    hover: async (i, x, y) => {
      pointed = i;
      tip.hidden = i < 0;
      if (i < 0) return;
      const told = make("div", { class: "soft" }, swatch(main.cluster[i]), ` ${nameOf(main.cluster[i])} (${percent(confidence[i] / 255)})`);
      tip.replaceChildren(told);
      putBeside(tip, map.canvas, x, y);
      const each = await ask(`/api/text/${rowOf[i]}`).catch(() => null);
      if (pointed !== i || !each) return;
      tip.replaceChildren(make("div", { text: each.text.slice(0, 300), dir: "auto" }), told);
      putBeside(tip, map.canvas, x, y);
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
  // A list alone must not act: with the keyboard one passes through all that stand before the one that is meant.
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
    if (to === NEW) edit({ kind: "separate", rows }, "Making a new group …");
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
      byId("placed").replaceChildren(...(await ask("/api/place", { texts })).placed.map(placedEntry));
    }, "Placing …");
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
  byId("hint").textContent = `One point a text; texts alike lie near. Click a point or a group.${points.count < run.distinct ? ` ${count(points.count)} of ${count(run.distinct)} texts are drawn; lists and search hold all.` : ""}`;
  adopt(run);
  listen();
  await refresh();
  document.documentElement.dataset.ready = "true";
});
