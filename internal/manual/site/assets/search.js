// The search of the documentation. It loads the index when the search is used for the first time.
var sections = [];

// find returns the sections in which all words of a query occur, the best first.
function find(all, query) {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return [];
  const found = [];
  all.forEach((section, order) => {
    let score = 0;
    for (const word of words) {
      const value = rate(section, word);
      if (value === 0) return;
      score += value;
    }
    found.push({ section, score, order });
  });
  found.sort((a, b) => b.score - a.score || a.order - b.order);
  return found.slice(0, 20).map((f) => f.section);
}

// rate returns how well a section matches a word; 0 is no match.
function rate(section, word) {
  const heading = section.heading.toLowerCase();
  let value = 0;
  if (heading.split(/[^\p{L}\p{N}-]+/u).includes(word)) value += 20;
  else if (heading.includes(word)) value += 10;
  if (section.page.toLowerCase().includes(word)) value += 8;
  const parts = section.text.toLowerCase().split(word).length - 1;
  return value + Math.min(parts, 5);
}

// excerpt returns the text around the first word of a query.
function excerpt(text, query) {
  const word = query.toLowerCase().split(/\s+/).filter(Boolean)[0] || "";
  const at = Math.max(text.toLowerCase().indexOf(word), 0);
  const from = at > 80 ? text.indexOf(" ", at - 80) + 1 : 0;
  return (from > 0 ? "… " : "") + text.slice(from, from + 220) + (text.length > from + 220 ? " …" : "");
}

function start() {
  const root = document.body.dataset.root;
  const form = document.querySelector("form[role=search]");
  const input = form.querySelector("input");
  const results = document.getElementById("results");
  const article = document.querySelector("article");
  form.hidden = false;

  let loading = false;
  function load() {
    if (loading) return;
    loading = true;
    const script = document.createElement("script");
    script.src = root + "search-index.js";
    script.onload = show;
    document.head.append(script);
  }

  function show() {
    const query = input.value.trim();
    results.hidden = query === "";
    article.hidden = query !== "";
    if (query === "") return;
    const list = document.createElement("ol");
    for (const section of find(sections, query)) {
      const item = document.createElement("li");
      const link = document.createElement("a");
      link.href = root + section.address;
      link.textContent = section.heading === section.page ? section.page : section.page + ": " + section.heading;
      link.addEventListener("click", () => { input.value = ""; show(); });
      const text = document.createElement("p");
      text.className = "dim";
      text.textContent = excerpt(section.text, query);
      item.append(link, text);
      list.append(item);
    }
    const title = document.createElement("h1");
    title.textContent = list.children.length === 0 ? "Nothing found" : "Found";
    results.replaceChildren(title, list);
  }

  input.addEventListener("focus", load);
  input.addEventListener("input", () => { load(); show(); });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const first = results.querySelector("a");
    if (first) first.click();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && document.activeElement !== input && !event.ctrlKey && !event.metaKey) {
      event.preventDefault();
      input.focus();
    } else if (event.key === "Escape" && document.activeElement === input) {
      input.value = "";
      show();
      input.blur();
    }
  });
}

if (typeof document !== "undefined") start();
