"use strict";

// The review by keys, and files that are loaded when they are opened. All of it also works by links and forms.

// load shows the rows to which a link leads.
async function load(link) {
  if (link.dataset.loading) return;
  link.dataset.loading = "yes";
  try {
    const answer = await fetch(link.href, { headers: { Accept: "text/html" } });
    if (!answer.ok) return;
    const rows = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("rows");
    link.parentElement.replaceWith(...rows.childNodes);
  } finally {
    delete link.dataset.loading;
  }
}
document.addEventListener("toggle", (e) => { if (e.target.open && e.target.matches(".file")) begin(e.target); }, true);
document.addEventListener("click", (e) => {
  if (!e.target.matches?.("a.load") || e.ctrlKey || e.metaKey || e.shiftKey) return;
  e.preventDefault();
  load(e.target);
});

// begin shows the first rows of an open file.
function begin(file) {
  const link = file.querySelector("a.load");
  if (link && !file.querySelector("table")) load(link);
}

function beginAll() { for (const file of document.querySelectorAll(".file[open]")) begin(file); }
beginAll();

// The selected line or heading of a file.
let here = null;
const hereName = location.pathname + " line";
function select(row) {
  if (!row) return;
  here?.classList.remove("here");
  here = row;
  here.classList.add("here");
  here.scrollIntoView({ block: "nearest" });
  sessionStorage.setItem(hereName, JSON.stringify([here.closest(".file").id, placeOf(here)]));
}
const placeOf = (row) => [...row.querySelectorAll("a[data-place]")].pop()?.dataset.place ?? "";

// The selected line stays when the page shows more, and when it is loaded again.
function selectAgain() {
  if (here?.isConnected) return;
  const [id, place] = JSON.parse(sessionStorage.getItem(hereName) ?? "[]");
  const file = id && document.getElementById(id);
  if (!file) return;
  const link = place && file.querySelector('a[data-place="' + CSS.escape(place) + '"]');
  select(link ? link.closest("tr") : file.querySelector("summary"));
}
document.addEventListener("shown", () => { beginAll(); selectAgain(); });

// step selects the next row or file, counted from the selected line.
function step(all, by) {
  all = [...all];
  if (!here) { select(by > 0 ? all[0] : all[all.length - 1]); return; }
  const after = (e) => here.compareDocumentPosition(e) & Node.DOCUMENT_POSITION_FOLLOWING;
  const before = (e) => here.compareDocumentPosition(e) & Node.DOCUMENT_POSITION_PRECEDING && !e.contains(here);
  select(by > 0 ? all.find(after) : all.reverse().find(before));
}

const isShown = (e) => e.closest("details")?.open;
document.addEventListener("keydown", (e) => {
  if (e.ctrlKey || e.metaKey || e.altKey || e.target.matches("input, textarea")) return;
  const lines = () => [...document.querySelectorAll("tr.line")].filter(isShown);
  const file = () => here?.closest(".file");
  switch (e.key) {
    case "j": step(lines(), 1); break;
    case "k": step(lines(), -1); break;
    case "n": step(document.querySelectorAll(".file > summary"), 1); break;
    case "p": step(document.querySelectorAll(".file > summary"), -1); break;
    case "c": { const links = here?.querySelectorAll("a[data-place]"); links?.[links.length - 1]?.click(); break; }
    case "v": file()?.querySelector(".mark")?.requestSubmit(); break;
    case "a": case "r": {
      const action = document.querySelector('details.action[id$="/do/' + e.key + '"]');
      if (action) { action.open = true; action.querySelector("textarea, button").focus(); }
      break;
    }
    default: return;
  }
  e.preventDefault();
});

// A click with shift selects the lines from the last place that was commented on.
document.addEventListener("click", (e) => {
  const link = e.target.closest?.("a[data-place]");
  const field = document.querySelector("#comment [name=place]");
  if (!link || !e.shiftKey || !field) return;
  const cut = (place) => /^(.*:-?)(\d+)(?:-(\d+))?$/.exec(place);
  const from = cut(field.value), to = cut(link.dataset.place);
  if (!from || !to || from[1] !== to[1]) return;
  e.preventDefault();
  const numbers = [from[2], from[3] ?? from[2], to[2]].map(Number);
  field.value = from[1] + Math.min(...numbers) + "-" + Math.max(...numbers);
});

// What a person has typed stays when the page is loaded again, until it is a draft.
for (const field of document.querySelectorAll("[data-keep]")) {
  const name = location.pathname + " " + field.dataset.keep;
  field.value = sessionStorage.getItem(name) ?? "";
  field.addEventListener("input", () => sessionStorage.setItem(name, field.value));
  field.form.addEventListener("submit", () => sessionStorage.setItem("added", name));
}
if (!document.querySelector("[data-keep]")) { // the form was sent, and has led here
  sessionStorage.removeItem(sessionStorage.getItem("added"));
  sessionStorage.removeItem("added");
}
selectAgain();
