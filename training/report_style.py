"""How a report looks and moves: the one style sheet and the one script of the page. It asks nothing of the network."""

CSS = """
:root {
  --page: #f7f2e8; --card: #fffdf8; --ink: #2a241e; --faint: #6b5d4d; --line: #e0d5c1;
  --accent: #0b62a8; --won: #2f6f9f; --drawn: #c9bda8; --lost: #bf5b2c;
}
* { box-sizing: border-box; }
body {
  margin: 0; background: var(--page); color: var(--ink);
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", "Liberation Sans", Helvetica, Arial, sans-serif;
}
main { max-width: 1040px; margin: 0 auto; padding: 40px 24px 64px; }
h1 { font-size: 30px; line-height: 1.2; margin: 0 0 4px; letter-spacing: -0.01em; overflow-wrap: anywhere; }
h2 { font-size: 20px; margin: 0 0 12px; }
p { margin: 0 0 12px; }
a { color: var(--accent); }
.lead { color: var(--faint); font-size: 17px; margin-bottom: 28px; }
.card {
  background: var(--card); border: 1px solid var(--line); border-radius: 12px; padding: 24px; margin-bottom: 24px;
}
.tiles { display: flex; flex-wrap: wrap; gap: 16px; margin-bottom: 24px; }
.tile { flex: 1 1 180px; margin: 0; padding: 16px 20px; }
.tile .number { font-size: 32px; font-weight: 650; line-height: 1.15; }
.tile .range, .note, figcaption, .legend { color: var(--faint); font-size: 14px; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: right; padding: 8px 10px; border-bottom: 1px solid var(--line); white-space: nowrap; }
th { font-size: 13px; font-weight: 600; color: var(--faint); border-bottom: 2px solid var(--line); }
th:first-child, td:first-child { text-align: left; padding-left: 0; }
th:last-child, td:last-child { padding-right: 0; }
td.name { font-weight: 600; white-space: normal; overflow-wrap: anywhere; min-width: 150px; }
td.left { text-align: left; }
td small { color: var(--faint); }
tr:last-child td { border-bottom: none; }
.cross td, .cross th { text-align: center; }
.cross td:first-child, .cross th:first-child { text-align: left; }
.bar { display: flex; width: 160px; height: 14px; border-radius: 7px; overflow: hidden; background: var(--line); }
.bar span { display: block; height: 100%; }
.won { background: var(--won); } .drawn { background: var(--drawn); } .lost { background: var(--lost); }
.legend span.key { display: inline-block; width: 11px; height: 11px; border-radius: 3px; margin: 0 6px 0 14px; }
.legend span.key:first-child { margin-left: 0; }
.warn { border-left: 4px solid var(--lost); padding-left: 12px; }
figure { margin: 0; } figure img { display: block; width: 100%; height: auto; }
figure .scroll img { min-width: 620px; }
figure img.on-white { mix-blend-mode: multiply; }
details { margin-top: 16px; } summary { cursor: pointer; color: var(--accent); }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 6px 20px; margin: 0; }
dt { color: var(--faint); } dd { margin: 0; overflow-wrap: anywhere; }
code { font: 14px/1.5 ui-monospace, "Liberation Mono", Menlo, Consolas, monospace; }
.replay { display: grid; grid-template-columns: repeat(auto-fill, minmax(200px, 1fr)); gap: 16px; }
.replay .frame img { width: 100%; height: auto; border-radius: 8px; }
.replay .moves { grid-column: 1 / -1; }
.gallery { display: grid; grid-template-columns: repeat(auto-fill, minmax(240px, 1fr)); gap: 20px; }
figure + .scroll { margin-top: 16px; }
.gallery { margin-bottom: 16px; } .scroll + .note { margin-top: 12px; }
.gallery img { border-radius: 8px; margin-bottom: 6px; }
.controls { display: none; }
.moves ol { list-style: none; margin: 0; padding: 0; }
.moves li a {
  display: flex; gap: 8px; padding: 2px 8px; border-radius: 6px; color: inherit; text-decoration: none;
  font-variant-numeric: tabular-nums;
}
.moves li a:hover { background: var(--page); }
.moves li.random { color: var(--faint); font-style: italic; }
.moves .ply { color: var(--faint); min-width: 2.2em; text-align: right; }
.moves .side { width: 12px; height: 12px; border-radius: 6px; border: 1px solid #4f3820; }
.moves .side { align-self: center; flex: none; }
.moves .side.natural { background: #fdf4dd; } .moves .side.black { background: #2b292e; }
.script .replay {
  grid-template: auto 1fr / minmax(0, 480px) minmax(220px, 1fr); gap: 16px 24px; align-items: start;
}
.script .replay .frame { display: none; grid-column: 1; grid-row: 1; }
.script .replay .frame.shown { display: block; }
.script .controls { display: flex; gap: 8px; align-items: center; grid-column: 1; grid-row: 2; flex-wrap: wrap; }
.script .controls input { flex: 1 1 120px; accent-color: var(--accent); }
.script .replay .moves {
  grid-column: 2; grid-row: 1 / span 2; max-height: 640px; overflow-y: auto; position: relative;
}
.script .moves li.current a { background: var(--accent); color: #fff; }
.script .moves li.current .ply { color: #d5e5f2; }
button {
  font: inherit; padding: 6px 14px; border: 1px solid var(--line); border-radius: 8px; background: var(--page);
  color: var(--ink); cursor: pointer;
}
button:hover:not(:disabled) { border-color: var(--accent); } button:disabled { opacity: 0.45; cursor: default; }
@media (max-width: 760px) {
  main { padding: 24px 14px 40px; } .card { padding: 16px; }
  .script .replay { grid-template: auto auto auto / minmax(0, 1fr); }
  .script .replay .moves { grid-column: 1; grid-row: 3; max-height: 240px; }
}
@media print { .script .controls { display: none; } .card { break-inside: avoid; } }
"""

SCRIPT = """
(function () {
  var replay = document.querySelector(".replay");
  if (!replay) return;
  document.documentElement.classList.add("script");
  var frames = replay.querySelectorAll(".frame"), items = replay.querySelectorAll(".moves li");
  var list = replay.querySelector(".moves"), slider = replay.querySelector("input");
  var first = replay.querySelector("[data-go=first]"), back = replay.querySelector("[data-go=back]");
  var next = replay.querySelector("[data-go=next]"), last = replay.querySelector("[data-go=last]");
  var current = 0;
  function show(index) {
    current = Math.max(0, Math.min(frames.length - 1, index));
    frames.forEach(function (frame, i) { frame.classList.toggle("shown", i === current); });
    items.forEach(function (item, i) { item.classList.toggle("current", i === current); });
    var item = items[current], top = item.offsetTop, bottom = top + item.offsetHeight;
    if (top < list.scrollTop) list.scrollTop = top;
    if (bottom > list.scrollTop + list.clientHeight) list.scrollTop = bottom - list.clientHeight;
    slider.value = current;
    first.disabled = back.disabled = current === 0;
    next.disabled = last.disabled = current === frames.length - 1;
  }
  first.onclick = function () { show(0); };
  back.onclick = function () { show(current - 1); };
  next.onclick = function () { show(current + 1); };
  last.onclick = function () { show(frames.length - 1); };
  slider.oninput = function () { show(Number(slider.value)); };
  items.forEach(function (item, i) {
    item.querySelector("a").onclick = function (event) { event.preventDefault(); show(i); };
  });
  document.addEventListener("keydown", function (event) {
    if (event.target.tagName === "INPUT" || event.ctrlKey || event.altKey || event.metaKey) return;
    if (event.key === "ArrowLeft") show(current - 1);
    if (event.key === "ArrowRight") show(current + 1);
  });
  slider.max = frames.length - 1;
  show(0);
})();
"""
