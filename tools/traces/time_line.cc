// SPDX-License-Identifier: BSD-3-Clause
#include "tools/traces/time_line.h"

namespace ibcoll::tracing {
namespace {

const char* const kHead = R"(<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>ibcoll trace</title>
<style>
:root { color-scheme: light dark; --paper: #fff; --ink: #222; --grid: #ddd; --edge: #000; --shared: #04c; --tip: #fffde8; }
@media (prefers-color-scheme: dark) {
  :root { --paper: #16181c; --ink: #ddd; --grid: #444; --edge: #fff; --shared: #7ab8ff; --tip: #33301c; }
}
body { font: 14px sans-serif; margin: 12px; background: var(--paper); color: var(--ink); }
canvas { border: 1px solid #888; display: block; cursor: grab; }
#tip { position: fixed; background: var(--tip); border: 1px solid #888; padding: 4px 8px; white-space: pre; display: none;
  pointer-events: none; }
.key { display: inline-block; width: 12px; height: 12px; margin: 0 4px 0 14px; vertical-align: -1px; }
table { border-collapse: collapse; margin: 8px 0 12px; }
th, td { padding: 1px 10px; text-align: right; white-space: nowrap; border-bottom: 1px solid var(--grid); }
th:first-child, td:first-child, th:last-child, td:last-child { text-align: left; }
td:last-child { white-space: normal; overflow-wrap: anywhere; }
</style></head><body>
)";

const char* const kTimeLine = R"(<div id="legend"></div>
<p style="margin:6px 0">Hatched: the rank waits for the last arrival. Strong edge: the rank that arrived last. Zoom: wheel, or
+ and -; move: drag, or the arrow keys; all: double click, or 0. Point at a call: lines from when a rank began to send to a
peer to when all of that was there; solid: of the rank under the pointer. Dashed: in shared memory, from when a rank
published to when another one of its node, which waited for it, went on.</p>
<canvas id="c" role="img" aria-label="The calls of each rank over time; the table has their means"></canvas><div id="tip"></div>
<script>
"use strict";
const trace = )";

const char* const kScript = R"js(;
const canvas = document.getElementById("c"), ctx = canvas.getContext("2d"), tip = document.getElementById("tip");
const left = 70, top_ = 8, row = Math.max(8, Math.min(34, 600 / trace.ranks));
const end = trace.calls.reduce((most, c) => Math.max(most, ...c.exit), trace.least);
const names = [...new Set(trace.calls.map(c => c.name))];
// The colours of seven collectives; colour-blind readers can distinguish them. Further collectives repeat the colours,
// with a dark lower half.
const colours = ["#a0b4e9", "#e4a80c", "#1dcb9e", "#dede84", "#4662c3", "#cc2603", "#9d4f86"];
const styles = new Map(names.map((name, i) => [name, { fill: colours[i % colours.length],
  text: i % colours.length < 4 ? "#000" : "#fff", half: i >= colours.length }]));
const paint = name => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
let from = 0, to = end, dragged = null, width = 0, shown = null, shownRank = -1, paints = {};
for (const [name, style] of styles) {
  const key = document.createElement("span"), text = document.createElement("span");
  key.className = "key"; text.textContent = name;
  key.style.background = style.half ? `linear-gradient(${style.fill} 50%, #333 50%)` : style.fill;
  document.getElementById("legend").append(key, text);
}
const x = t => left + (t - from) / (to - from) * (width - left);
const time = px => from + (px - left) / (width - left) * (to - from);
const us = t => t >= 1e6 ? (t / 1e6).toFixed(3) + " s" : t >= 1e3 ? (t / 1e3).toFixed(3) + " ms" : t.toFixed(2) + " us";
function hatch() {
  const p = document.createElement("canvas"); p.width = p.height = 6;
  const g = p.getContext("2d"); g.strokeStyle = "rgba(0,0,0,0.6)"; g.lineWidth = 1.2;
  g.beginPath(); g.moveTo(0, 6); g.lineTo(6, 0); g.stroke();
  return ctx.createPattern(p, "repeat");
}
const pattern = hatch();
function axis() {
  const raw = (to - from) / 8, power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].find(k => k * power >= raw) * power, bottom = top_ + row * trace.ranks;
  ctx.textAlign = "center"; ctx.fillStyle = paints.ink; ctx.strokeStyle = paints.grid;
  for (let t = Math.ceil(from / step) * step; t <= to; t += step) {
    ctx.beginPath(); ctx.moveTo(x(t), top_); ctx.lineTo(x(t), bottom + 4); ctx.stroke();
    ctx.fillText(us(t), x(t), bottom + 18);
  }
}
function bar(call, i) {
  const y = top_ + row * call.rank[i] + 1, h = row - 2, a = x(call.arrival[i]), b = x(call.exit[i]);
  const w = Math.max(1, b - a), wait = Math.min(x(call.last), b) - a, style = styles.get(call.name);
  ctx.fillStyle = style.fill; ctx.fillRect(a, y, w, h);
  if (style.half) { ctx.fillStyle = "#333"; ctx.fillRect(a, y + h / 2, w, h / 2); }
  if (wait > 2) { ctx.fillStyle = pattern; ctx.fillRect(a, y, wait, h); }
  if (w > 4) { ctx.strokeStyle = paints.ink; ctx.strokeRect(a + 0.5, y + 0.5, w - 1, h - 1); }
  call.first ??= Math.min(...call.arrival);
  if (call.rank[i] === call.late && x(call.last) - x(call.first) > 4) { ctx.fillStyle = paints.edge; ctx.fillRect(a - 1, y, 4, h); }
  if (w > 40 && h > 12 && !style.half) name(call, style, y + h / 2 + 4, Math.max(a, left), Math.min(b, width), wait);
}
// The collective, where there is room for it: not on the hatched part, if the rest has room.
function name(call, style, y, a, b, wait) {
  style.width ??= ctx.measureText(call.name).width + 12;
  if (b - a < style.width) return;
  ctx.fillStyle = style.text; ctx.textAlign = "left";
  ctx.fillText(call.name, (b - a - wait > style.width ? a + Math.max(0, wait) : a) + 6, y);
}
const middle = rank => top_ + row * (rank + 0.5);
// Lists what went to each peer: from when it began to when the peer had all of it or, unknown there, to when it left.
function messages(call) {
  const landed = {};
  call.served.forEach((peers, i) => { for (const [peer, , , at] of peers) landed[peer + ">" + call.rank[i]] = at; });
  const all = [];
  call.served.forEach((peers, i) => {
    for (const [to, begun, sent] of peers)
      if (begun !== null) all.push({ from: call.rank[i], to, begun, end: landed[call.rank[i] + ">" + to] ?? sent ?? begun });
  });
  return all.sort((a, b) => a.begun - b.begun);
}
// The waits of ranks for others of their node: from the time that the awaited rank published, or from the beginning of
// the wait, to its end.
function waits(call) {
  ctx.strokeStyle = ctx.fillStyle = paints.shared; ctx.setLineDash([5, 3]);
  call.node.forEach((node, i) => {
    if (node === null || node[1] === null) return;
    const [, on, since, until] = node, other = call.node[call.rank.indexOf(on)];
    const published = other && other[0] !== null ? other[0] : since, at = middle(call.rank[i]);
    ctx.lineWidth = call.rank[i] === shownRank ? 1.5 : 1;
    ctx.beginPath(); ctx.moveTo(x(Math.min(Math.max(published, since), until)), middle(on)); ctx.lineTo(x(until), at);
    ctx.stroke(); ctx.fillRect(x(until) - 2, at - 2, 4, 4);
  });
  ctx.setLineDash([]);
}
function lines(call) {
  waits(call);
  ctx.strokeStyle = ctx.fillStyle = paints.edge;
  for (const m of messages(call)) {
    const own = m.from === shownRank;
    ctx.globalAlpha = own ? 1 : 0.45; ctx.lineWidth = own ? 1.5 : 1;
    ctx.beginPath(); ctx.moveTo(x(m.begun), middle(m.from)); ctx.lineTo(x(m.end), middle(m.to)); ctx.stroke();
    ctx.fillRect(x(m.end) - 2, middle(m.to) - 2, 4, 4);
  }
  ctx.lineWidth = ctx.globalAlpha = 1;
}
function draw() {
  for (const name of ["ink", "grid", "edge", "shared"]) paints[name] = paint(name);
  ctx.clearRect(0, 0, canvas.width, canvas.height);
  axis();
  ctx.save(); ctx.beginPath(); ctx.rect(left, 0, width - left, canvas.height); ctx.clip();
  for (const call of trace.calls)
    for (let i = 0; i < call.rank.length; ++i)
      if (call.exit[i] >= from && call.arrival[i] <= to) bar(call, i);
  if (shown) lines(shown);
  ctx.restore();
  ctx.fillStyle = paints.ink; ctx.textAlign = "right";
  const each = Math.ceil(14 / row);
  for (let r = 0; r < trace.ranks; r += each) ctx.fillText("rank " + r, left - 6, top_ + row * (r + 0.5) + 4);
}
function resize() {
  const height = top_ + row * trace.ranks + 28, scale = devicePixelRatio || 1;
  width = document.body.clientWidth - 2;
  canvas.width = width * scale; canvas.height = height * scale;
  canvas.style.width = width + "px"; canvas.style.height = height + "px";
  ctx.setTransform(scale, 0, 0, scale, 0, 0); ctx.font = "12px sans-serif"; draw();
}
function show(a, b) {
  const span = Math.min(end * 1.05, Math.max(0.05, b - a));
  from = Math.max(-0.05 * end, Math.min(a, end * 1.05 - span)); to = from + span; draw();
}
const zoom = (at, k) => show(at - (at - from) * k, at + (to - at) * k);
canvas.addEventListener("wheel", e => { e.preventDefault(); zoom(time(e.offsetX), Math.exp(e.deltaY * 0.0015)); },
                        { passive: false });
window.addEventListener("keydown", e => {
  if (e.ctrlKey || e.altKey || e.metaKey) return;
  const move = by => show(from + by * (to - from), to + by * (to - from)), middle = (from + to) / 2;
  const does = { "+": () => zoom(middle, 0.7), "=": () => zoom(middle, 0.7), "-": () => zoom(middle, 1 / 0.7),
                 ArrowLeft: () => move(-0.2), ArrowRight: () => move(0.2), 0: () => show(0, end) }[e.key];
  if (does) { e.preventDefault(); does(); }
});
canvas.addEventListener("mousedown", e => { dragged = { at: e.clientX, from, to }; });
window.addEventListener("mouseup", () => { dragged = null; });
window.addEventListener("mousemove", e => {
  if (!dragged) return;
  const by = (e.clientX - dragged.at) / (width - left) * (dragged.to - dragged.from);
  show(dragged.from - by, dragged.to - by);
});
canvas.addEventListener("dblclick", () => show(0, end));
function point(call, rank) {
  if (call === shown && rank === shownRank) return;
  shown = call; shownRank = rank; draw();
}
canvas.addEventListener("mouseleave", () => { tip.style.display = "none"; point(null, -1); });
canvas.addEventListener("mousemove", e => {
  const rank = Math.floor((e.offsetY - top_) / row), at = time(e.offsetX), slack = (to - from) / width;
  let text = "", under = null;
  for (const c of trace.calls) {
    const i = c.rank.indexOf(rank);
    if (i < 0 || at < c.arrival[i] - slack || at > c.exit[i] + slack) continue;
    text = `${c.name} (${c.algorithm}), ${Math.round(c.bytes)} bytes\n${trace.sites[c.site]}\nrank ${rank}: arrived ${us(c.arrival[i])}, ` +
      `in the call ${us(c.exit[i] - c.arrival[i])}\nwaited for the last arrival ${us(Math.max(0, c.last - c.arrival[i]))}\n` +
      `last: rank ${c.late}, ${us(c.last - Math.min(...c.arrival))} after the first`;
    const order = messages(c).filter(m => m.from === rank).map(m => `${m.to} ${us(m.begun - c.arrival[i])}`);
    if (order.length > 0) text += `\nserved, after its arrival: ${order.slice(0, 16).join(", ")}`;
    if (order.length > 16) text += `, and ${order.length - 16} more`;
    const node = c.node[i];
    if (node !== null && node[1] !== null)
      text += `\nwaited for rank ${node[1]} of its node: ${us(node[2] - c.arrival[i])} to ${us(node[3] - c.arrival[i])}`;
    under = c;
  }
  if (!dragged) point(under, rank);
  tip.style.display = text && !dragged ? "block" : "none"; tip.textContent = text;
  tip.style.left = Math.min(e.clientX + 14, innerWidth - 420) + "px"; tip.style.top = e.clientY + 14 + "px";
});
window.addEventListener("resize", resize);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
resize();
</script></body></html>
)js";

}  // namespace

std::string html_text(const std::string& text) {
  std::string safe;
  for (const char letter : text)
    safe += letter == '&'   ? "&amp;"
            : letter == '<' ? "&lt;"
            : letter == '>' ? "&gt;"
            : letter == '"' ? "&quot;"
                            : std::string(1, letter);
  return safe;
}

std::string page_head() { return kHead; }

void write_time_line(const TracedJob& job, const std::vector<PageCall>& shown, double least_us, const Writer& write) {
  write(kTimeLine);
  write_calls(job, shown, least_us, write);
  write(kScript);
}

}  // namespace ibcoll::tracing
