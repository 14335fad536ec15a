"use strict";
/* Shared by the report and the explorer. A page that uses it defines `clusters`: its clusters by id, each with a name. */
const byId = (id) => document.getElementById(id);
const percent = (share) => `${Math.round(100 * share)} %`;
const count = (n) => n.toLocaleString("en");

/** Make an HTML element; text is never interpreted as HTML. */
function make(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "text") made.textContent = value;
    else if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value !== false && value !== null) made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children);
  return made;
}

/** Make an SVG element. */
function makeSvg(tag, attributes, text) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

/** Decode base64 into a typed array. */
function unpack(packed, Kind) {
  const bytes = Uint8Array.from(atob(packed), (letter) => letter.charCodeAt(0));
  return new Kind(bytes.buffer);
}

/* Colours: hues a golden angle apart, in three lightnesses, so that neighbours in the list differ. */
function isDark() {
  const theme = document.documentElement.dataset.theme;
  return theme ? theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}
/** Red, green and blue from 0 to 255. */
function rgb(hue, saturation, light) {
  const s = saturation / 100, l = light / 100, a = s * Math.min(l, 1 - l);
  return [0, 8, 4].map((n) => {
    const k = (n + hue / 30) % 12;
    return Math.round(255 * (l - a * Math.max(-1, Math.min(k - 3, 9 - k, 1))));
  });
}
/** Relative luminance by WCAG, from 0 to 1: how bright a colour looks. */
function luminance(channels) {
  const [red, green, blue] = channels.map((value) => (value <= 10 ? value / 3294.6 : ((value / 255 + 0.055) / 1.055) ** 2.4));
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}
/** The colour of a cluster: made lighter or darker until its contrast to the background is 3 to 1. */
const colours = { true: new Map(), false: new Map() };
function colour(id) {
  if (id < 0) return [136, 136, 136];
  const dark = isDark(), known = colours[dark];
  if (known.has(id)) return known.get(id);
  const hue = (id * 137.508 + 215) % 360, saturation = id % 2 ? 58 : 72;
  let light = (dark ? [62, 74, 50] : [46, 34, 58])[id % 3], found = rgb(hue, saturation, light);
  for (; light > 0 && light < 100 && (dark ? luminance(found) < 0.145 : luminance(found) > 0.27); light += dark ? 2 : -2)
    found = rgb(hue, saturation, light + (dark ? 2 : -2));
  known.set(id, found);
  return found;
}
function css(id) {
  return `rgb(${colour(id).join(", ")})`;
}
/** A colour as a pixel: little-endian alpha, blue, green, red. */
function pixel(id, alpha) {
  const [red, green, blue] = colour(id);
  return ((alpha << 24) | (blue << 16) | (green << 8) | red) >>> 0;
}

/** How much more a map may be stretched in one direction than in the other to fill its canvas: far distances mean little anyway. */
const MAX_STRETCH = 1.6;
/** Width in pixels below which the names on a map are shortened. */
const NARROW = 500;
/** Letters of a shortened name. */
const SHORT_NAME = 18;

/** Points on a canvas, written pixel by pixel: a hundred thousand take a few milliseconds.
 *
 * With `labels` it fills its canvas and shows the names of the clusters; without, it keeps to the square that maps side by side share.
 * `coloring` colours points by something other than their cluster: the number of each point (`of`) and what the numbers mean (`named`). */
class PointMap {
  constructor(canvas, points, labels = false) {
    Object.assign(this, { canvas, points, labels, scale: 1, dx: 0, dy: 0, shown: null, frame: 0, coloring: null });
    this.context = canvas.getContext("2d");
    this.count = points.cluster.length;
    new ResizeObserver(() => this.ask()).observe(canvas);
  }
  ask() {
    if (!this.frame) this.frame = requestAnimationFrame(() => { this.frame = 0; this.draw(); });
  }
  resize() {
    const ratio = Math.min(2, window.devicePixelRatio || 1);
    const width = Math.max(1, Math.round(this.canvas.clientWidth * ratio));
    const height = Math.max(1, Math.round(this.canvas.clientHeight * ratio));
    if (width !== this.canvas.width || height !== this.canvas.height || !this.image) {
      this.canvas.width = width; this.canvas.height = height;
      this.image = this.context.createImageData(width, height);
      this.pixels = new Uint32Array(this.image.data.buffer);
    }
    this.ratio = ratio;
    const { halfX, halfY, midX, midY } = this.box();
    let across = 0.46 * width / halfX, up = 0.46 * height / halfY;
    const most = this.labels ? MAX_STRETCH : 1;
    across = Math.min(across, most * up); up = Math.min(up, most * across);
    this.unitX = across * this.scale; this.unitY = up * this.scale;
    this.fromX = width / 2 + this.dx * ratio - midX * this.unitX;
    this.fromY = height / 2 + this.dy * ratio + midY * this.unitY;
  }
  /** What fills the canvas: the middle of the points and half their extent. */
  box() {
    if (!this.labels || !this.count) return { halfX: 32000, halfY: 32000, midX: 0, midY: 0 };
    if (this._box?.of !== this.points.x) {
      const range = (values) => values.reduce(([low, high], value) => [Math.min(low, value), Math.max(high, value)], [values[0], values[0]]);
      const [left, right] = range(this.points.x), [bottom, top] = range(this.points.y);
      this._box = { of: this.points.x, halfX: Math.max(1, (right - left) / 2), halfY: Math.max(1, (top - bottom) / 2), midX: (left + right) / 2, midY: (top + bottom) / 2 };
    }
    return this._box;
  }
  left(i) { return this.fromX + this.points.x[i] * this.unitX; }
  top(i) { return this.fromY - this.points.y[i] * this.unitY; }
  /** What colours and names the points: the number of each (`of`), and what the numbers mean (`named`). */
  get categories() { return this.coloring ?? { of: this.points.cluster, named: clusters }; }
  draw() {
    this.resize();
    const { pixels, canvas } = this, { of, named } = this.categories, width = canvas.width, height = canvas.height;
    pixels.fill(0);
    const dense = Math.sqrt(this.count / 1500) / this.scale;
    const radius = Math.max(1, Math.min(6, Math.round(this.ratio * 2.6 / Math.max(1, Math.sqrt(dense)) * Math.min(1.6, Math.max(1, width / this.ratio / 500)))));
    const disc = [];
    for (let y = -radius; y <= radius; y++)
      for (let x = -radius; x <= radius; x++) if (x * x + y * y <= radius * radius + 0.5) disc.push(y * width + x);
    const colors = (alpha) => named.map((_, id) => pixel(id, alpha)), strong = colors(215), faint = colors(34);
    strong[-1] = pixel(-1, 150); faint[-1] = pixel(-1, 34);
    const passes = this.shown ? [0, 1] : [1];
    for (const pass of passes)
      for (let i = 0; i < this.count; i++) {
        const here = !this.shown || this.shown[i] === 1;
        if (this.shown && here !== (pass === 1)) continue;
        const x = Math.round(this.left(i)), y = Math.round(this.top(i));
        if (x < radius || y < radius || x >= width - radius || y >= height - radius) continue;
        const color = (here ? strong : faint)[of[i]], at = y * width + x;
        for (const step of disc) pixels[at + step] = color;
      }
    this.context.putImageData(this.image, 0, 0);
    if (this.labels) this.writeNames();
  }
  /** Write the names at the medians of their points, the largest first; a name moves up or down to avoid another. */
  writeNames() {
    const { context, ratio } = this, taken = [], { width, height } = this.canvas, { named } = this.categories;
    const narrow = width / ratio < NARROW, tall = (narrow ? 7 : 9) * ratio;
    context.font = `600 ${(narrow ? 11 : 12) * ratio}px system-ui, sans-serif`;
    context.textAlign = "center"; context.textBaseline = "middle"; context.lineJoin = "round";
    const ink = getComputedStyle(document.body);
    for (const place of this.medians()) {
      const middle = this.fromX + place.x * this.unitX, line = this.fromY - place.y * this.unitY;
      if (middle < 0 || middle > width || line < 0 || line > height) continue;
      const whole = named[place.id].name, name = narrow && whole.length > SHORT_NAME ? `${whole.slice(0, SHORT_NAME - 1).trimEnd()}…` : whole;
      const half = context.measureText(name).width / 2 + 3 * ratio;
      // Inside the canvas, and a line or two higher or lower where another name stands.
      const x = Math.max(half, Math.min(width - half, middle));
      const y = [0, -1, 1, -2, 2, -3, 3].map((lines) => line + 2 * tall * lines).find((at) => at > tall && at < height - tall
        && !taken.some((other) => Math.abs(other.x - x) < other.half + half && Math.abs(other.y - at) < 2 * tall));
      if (y === undefined) continue;
      taken.push({ x, y, half });
      context.strokeStyle = ink.backgroundColor; context.lineWidth = 4 * ratio; context.strokeText(name, x, y);
      context.fillStyle = ink.color; context.fillText(name, x, y);
    }
    this.named = taken.length;
  }
  /** The median of every category's points, the largest category first. */
  medians() {
    if (!this._medians) {
      const { of: category, named } = this.categories, rows = named.map(() => []);
      for (let i = 0; i < this.count; i++) rows[category[i]]?.push(i);
      const middle = (values) => values.sort((a, b) => a - b)[values.length >> 1];
      this._medians = rows.map((of, id) => ({ id, size: of.length, x: middle(of.map((i) => this.points.x[i])), y: middle(of.map((i) => this.points.y[i])) }))
        .filter((place) => place.size).sort((a, b) => b.size - a.size);
    }
    return this._medians.filter((place) => !this.only || this.only.has(place.id));
  }
  zoom(factor, x = this.canvas.clientWidth / 2, y = this.canvas.clientHeight / 2) {
    const to = Math.max(0.5, Math.min(60, this.scale * factor)), by = to / this.scale;
    const fromX = x - this.canvas.clientWidth / 2, fromY = y - this.canvas.clientHeight / 2;
    this.dx = fromX - (fromX - this.dx) * by; this.dy = fromY - (fromY - this.dy) * by; this.scale = to;
    this.ask();
  }
  reset() { this.scale = 1; this.dx = this.dy = 0; this.ask(); }
  /** The point at a position on the canvas, or -1. */
  at(x, y) {
    let best = -1, nearest = (9 * this.ratio) ** 2;
    for (let i = 0; i < this.count; i++) {
      if (this.shown && this.shown[i] !== 1) continue;
      const far = (this.left(i) - x * this.ratio) ** 2 + (this.top(i) - y * this.ratio) ** 2;
      if (far < nearest) { nearest = far; best = i; }
    }
    return best;
  }
}

function swatch(id) { return make("span", { class: "swatch", style: `background:${css(id)}`, "data-swatch": id, "aria-hidden": "true" }); }

/** Place a tooltip beside a position on a canvas, inside the canvas. */
function placeTooltip(tip, canvas, x, y) {
  tip.style.left = `${Math.max(0, Math.min(x + 14, canvas.clientWidth - tip.offsetWidth - 4))}px`;
  tip.style.top = `${Math.max(0, y + 18 + tip.offsetHeight > canvas.clientHeight ? y - tip.offsetHeight - 10 : y + 18)}px`;
}

/** Move a map by mouse, touch and keys; `click` and `hover` receive the point under the pointer, -1 for none. */
function listenToMap(map, { click, hover, escape }) {
  const canvas = map.canvas, pointers = new Map();
  let moved = false;
  const place = (event) => { const box = canvas.getBoundingClientRect(); return [event.clientX - box.left, event.clientY - box.top]; };
  canvas.addEventListener("wheel", (event) => { event.preventDefault(); map.zoom(Math.exp(-event.deltaY / 400), ...place(event)); }, { passive: false });
  canvas.addEventListener("pointerdown", (event) => { canvas.setPointerCapture(event.pointerId); pointers.set(event.pointerId, place(event)); moved = false; });
  canvas.addEventListener("pointermove", (event) => {
    const [x, y] = place(event), last = pointers.get(event.pointerId);
    if (!last) { hover(map.at(x, y), x, y); return; }
    if (pointers.size === 1) { map.dx += x - last[0]; map.dy += y - last[1]; map.ask(); }
    else {
      const other = [...pointers].find(([id]) => id !== event.pointerId)[1];
      const before = Math.hypot(last[0] - other[0], last[1] - other[1]), now = Math.hypot(x - other[0], y - other[1]);
      if (before > 0) map.zoom(now / before, (x + other[0]) / 2, (y + other[1]) / 2);
    }
    if (Math.hypot(x - last[0], y - last[1]) > 2) { moved = true; hover(-1, x, y); }
    pointers.set(event.pointerId, [x, y]);
  });
  const release = (event) => { if (pointers.delete(event.pointerId) && !moved && event.type === "pointerup") click(map.at(...place(event))); };
  canvas.addEventListener("pointerup", release);
  canvas.addEventListener("pointercancel", release);
  canvas.addEventListener("pointerleave", (event) => hover(-1, ...place(event)));
  canvas.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: [40, 0], ArrowRight: [-40, 0], ArrowUp: [0, 40], ArrowDown: [0, -40] }[event.key];
    if (step) { map.dx += step[0]; map.dy += step[1]; map.ask(); }
    else if (event.key === "+" || event.key === "=") map.zoom(1.3);
    else if (event.key === "-") map.zoom(1 / 1.3);
    else if (event.key === "0") map.reset();
    else if (event.key === "Escape") escape();
    else return;
    event.preventDefault();
  });
}
