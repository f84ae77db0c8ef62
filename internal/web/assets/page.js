"use strict";

// The page follows one stream of events. A hidden page closes it, as a browser keeps few connections to a server.
const body = document.body;
const log = document.getElementById("log");
const connection = document.getElementById("connection");
const maxLines = 5000; // of the story
let at = body.dataset.at; // version of the shown page
let last = 0; // sequence number of the last event in the story
let events = null;

function follow() {
  if (events || document.hidden) return;
  const query = new URLSearchParams(log ? body.dataset.stream : "");
  query.set("at", at);
  if (log) query.set("after", last);
  events = new EventSource("/events?" + query);
  events.onopen = () => { connection.textContent = ""; };
  events.onerror = () => {
    connection.textContent = "not connected";
    if (events.readyState !== EventSource.CLOSED) return; // the browser tries again
    events = null;
    refresh();
  };
  events.addEventListener("changed", (e) => { at = e.data; refresh(); });
  events.addEventListener("line", (e) => { append(Number(e.lastEventId), e.data); });
}

function pause() {
  if (events) events.close();
  events = null;
}

document.addEventListener("visibilitychange", () => { document.hidden ? pause() : follow(); });

function append(id, text) {
  if (id <= last) return;
  last = id;
  const atEnd = log.scrollTop + log.clientHeight >= log.scrollHeight - 40;
  const line = document.createElement("div");
  line.textContent = text;
  log.append(line);
  while (log.childElementCount > maxLines) log.firstElementChild.remove();
  if (atEnd) log.scrollTop = log.scrollHeight;
}

// refresh replaces the parts of the page that may be old, except those in which a person writes.
let loading = false, again = false;
async function refresh() {
  if (loading) { again = true; return; }
  loading = true;
  try {
    const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
    if (answer.status === 401) { location.reload(); return; }
    if (answer.ok) replace(new DOMParser().parseFromString(await answer.text(), "text/html"));
  } catch {
    connection.textContent = "not connected";
  }
  loading = false;
  if (again) { again = false; refresh(); return; }
  if (!events) setTimeout(follow, 1000);
}

// content identifies the content of a part. A large one has a mark of it. The proofs of its forms are new each time.
function content(part) {
  if (part.dataset.mark) return part.dataset.mark;
  const copy = part.cloneNode(true);
  for (const proof of copy.querySelectorAll("[name=nonce]")) proof.removeAttribute("value");
  return copy.innerHTML;
}

// The content of each part as the server sent it: the person may have opened something in it since.
const shown = new Map([...document.querySelectorAll("[data-live]")].map((part) => [part.id, content(part)]));

function replace(page) {
  if (page.body.dataset.stream !== body.dataset.stream) { // another session of the task
    if (!isWriting(document)) location.reload();
    return;
  }
  at = page.body.dataset.at;
  const parts = [...page.querySelectorAll("[data-live]")]; // they leave the page when they are shown
  const ids = new Set(parts.map((part) => part.id));
  for (const [i, part] of parts.entries()) {
    const old = document.getElementById(part.id);
    if (!old) {
      const next = parts.slice(i + 1).map((p) => document.getElementById(p.id)).find(Boolean);
      if (next) next.before(part);
      else document.getElementById(part.parentElement.id)?.append(part);
      shown.set(part.id, content(part));
      continue;
    }
    const now = content(part);
    if (isWriting(old) || shown.get(part.id) === now) continue;
    shown.set(part.id, now);
    const details = [...old.querySelectorAll("details[id]")].map((d) => [d.id, d.open]);
    const focused = old.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
    if ("open" in old) part.open = old.open;
    old.replaceWith(part);
    for (const [id, open] of details) document.getElementById(id)?.toggleAttribute("open", open);
    if (focused) part.querySelector('a[href="' + CSS.escape(focused) + '"]')?.focus();
  }
  const fresh = new Map([...page.forms].map((form) => [form.getAttribute("action"), form]));
  for (const form of document.forms) { // of one that stays, the proof is renewed
    const proof = fresh.get(form.getAttribute("action"))?.elements.nonce;
    if (proof) form.elements.nonce.value = proof.value;
  }
  for (const old of document.querySelectorAll("[data-live]")) {
    if (!ids.has(old.id) && !isWriting(old)) old.remove();
  }
  document.dispatchEvent(new Event("shown"));
}

// isWriting reports whether a part has a text that a person has changed.
function isWriting(part) {
  return [...part.querySelectorAll("textarea, input:not([type=hidden])")].some((field) => field.value !== field.defaultValue);
}

// A second click does not send a form again.
document.addEventListener("submit", (e) => { for (const b of e.target.querySelectorAll("button")) b.disabled = true; });

window.addEventListener("pageshow", () => { for (const b of document.querySelectorAll("button")) b.disabled = false; });

// The keys j and k move between the cards, as on the screen.
document.addEventListener("keydown", (e) => {
  if (e.ctrlKey || e.metaKey || e.altKey || e.target.matches("input, textarea")) return;
  const cards = [...document.querySelectorAll(".card > a")];
  const here = cards.indexOf(document.activeElement);
  if (e.key === "j") cards[Math.min(here + 1, cards.length - 1)]?.focus();
  if (e.key === "k") cards[Math.max(here - 1, 0)]?.focus();
});

follow();
