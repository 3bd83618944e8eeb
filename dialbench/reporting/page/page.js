// Every response is put into the page as text (textContent), never as markup.

const find = (selector, root = document) => root.querySelector(selector);
const all = (selector, root = document) => [...root.querySelectorAll(selector)];

function make(tag, className = "", ...children) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  element.append(...children);
  return element;
}

// Theme

function startTheme() {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const button = find("#theme");
  button.hidden = false;
  button.addEventListener("click", () => {
    const root = document.documentElement;
    const now = root.dataset.theme ?? (dark.matches ? "dark" : "light");
    root.dataset.theme = now === "dark" ? "light" : "dark";
  });
}

// Tables

function startTables() {
  const shown = find("#shown");
  shown.hidden = false;
  for (const box of all("input", shown)) {
    const apply = () => document.body.classList.toggle(`show-${box.value}`, box.checked);
    box.addEventListener("change", apply);
    apply();
  }
  all("table.dialbench").forEach(makeSortable);
}

// Systems

const chosen = new Map(); // by label, whether it is shown

function startSystems() {
  addSystems(tableRows().map(labelOf));
  find("#filter").hidden = chosen.size < 2;
  find("#every").addEventListener("click", () => choose(() => true));
  find("#none").addEventListener("click", () => choose(() => false));
}

const tableRows = () => all("#tables table.dialbench tbody tr:not([data-summary])");
const labelOf = (row) => row.cells[0].textContent;

function addSystems(labels) {
  for (const label of labels.filter((label) => !chosen.has(label))) {
    chosen.set(label, true);
    const box = Object.assign(document.createElement("input"), { type: "checkbox", checked: true });
    box.addEventListener("change", () => choose((name) => (name === label ? box.checked : chosen.get(name))));
    find("#systems").append(make("label", "", box, " ", make("span", "label", label)));
  }
  showSystems();
}

function choose(test) {
  for (const [number, label] of [...chosen.keys()].entries()) {
    chosen.set(label, test(label));
    all("#systems input")[number].checked = chosen.get(label);
  }
  showSystems();
  if (testSet) refresh();
}

function showSystems() {
  const count = [...chosen.values()].filter(Boolean).length;
  find("#chosen").textContent = count === chosen.size ? `all ${count}` : `${count} of ${chosen.size}`;
  for (const row of tableRows()) row.hidden = chosen.get(labelOf(row)) === false;
}

function makeSortable(table) {
  const original = [...table.tBodies[0].rows];
  const heads = [...[...table.tHead.rows].at(-1).cells];
  heads.forEach((head, column) => {
    const button = make("button", "", ...head.childNodes);
    button.type = "button";
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const order = nextOrder(head, column);
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      if (order) head.setAttribute("aria-sort", order);
      table.tBodies[0].append(...sorted(original, column, order));
    });
  });
}

// Numbers start with the greatest, names with the first; the third click restores the table.
function nextOrder(head, column) {
  const orders = column === 0 ? ["ascending", "descending", ""] : ["descending", "ascending", ""];
  return orders[(orders.indexOf(head.getAttribute("aria-sort") ?? "") + 1) % 3];
}

// Rows that do not compete stay below the rule; missing values stand last.
function sorted(rows, column, order) {
  const ruled = rows.findIndex((row) => row.classList.contains("ruled"));
  const end = ruled < 0 ? rows.length : ruled;
  if (!order) return rows;
  const sign = order === "descending" ? -1 : 1;
  const compare = column === 0 ? byName : byValue(column, sign);
  const top = rows.slice(0, end).sort((a, b) => (column === 0 ? sign : 1) * compare(a, b));
  return [...top, ...rows.slice(end)];
}

function byName(a, b) {
  return a.cells[0].textContent.localeCompare(b.cells[0].textContent, "en", { numeric: true });
}

function byValue(column, sign) {
  const value = (row) => Number(row.cells[column].dataset.value ?? NaN);
  return (a, b) => {
    const [x, y] = [value(a), value(b)];
    if (isNaN(x) || isNaN(y)) return isNaN(x) - isNaN(y);
    return sign * (x - y);
  };
}

// Conversations

const PAGE = 10;
const GENERIC = "generic-rate";
const ENTAILMENT = "ue";
let testSet = null;
let matches = [];
let page = 0;

async function unpack(script) {
  const bytes = Uint8Array.from(atob(script.textContent), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

async function startConversations() {
  const packed = all("script.packed");
  if (!packed.length) return;
  const problem = find("#problem");
  if (typeof DecompressionStream === "undefined") {
    problem.textContent = "This browser cannot unpack the conversations. Any browser of 2023 or later can.";
    problem.hidden = false;
    return;
  }
  const choice = find("#corpus");
  choice.append(...packed.map((script) => new Option(script.dataset.title)));
  choice.parentElement.hidden = packed.length < 2;
  choice.addEventListener("change", () => openSet(packed[choice.selectedIndex]));
  for (const input of all("#browser [role=search] input")) input.addEventListener("input", refresh);
  find("#previous").addEventListener("click", () => turn(-1));
  find("#next").addEventListener("click", () => turn(1));
  await openSet(packed[0]);
  find("#browser").hidden = false;
}

async function openSet(script) {
  testSet = await unpack(script);
  testSet.lowered = { turns: lower(testSet.turns), systems: testSet.systems.map((system) => lower(system.texts)) };
  addSystems(testSet.systems.map((system) => system.label));
  find("#filter").hidden = chosen.size < 2;
  find("#filter-generic").hidden = metricIndex(GENERIC) < 0;
  find("#filter-contradiction").hidden = metricIndex(ENTAILMENT) < 0;
  refresh();
}

const lower = (texts) => texts.map((text) => text.toLowerCase());
const metricIndex = (name) => testSet.measures.findIndex((known) => known.name === name);

function visible() {
  const numbers = testSet.systems.map((_, number) => number);
  return numbers.filter((number) => chosen.get(testSet.systems[number].label));
}

function refresh() {
  const tests = [matching(find("#search").value.trim().toLowerCase())];
  for (const box of all("#browser [role=search] input[type=checkbox]:checked")) {
    if (!box.parentElement.hidden) tests.push(FILTERS[box.value]());
  }
  matches = testSet.ids.map((_, number) => number).filter((number) => tests.every((test) => test(number)));
  page = 0;
  show();
}

const FILTERS = {
  disagree: disagreeing,
  generic: () => withValue(GENERIC, (value) => value > 0),
  contradiction: () => withValue(ENTAILMENT, (value) => value < 0),
};

function matching(query) {
  if (!query) return () => true;
  const hits = (texts) => texts.map((text) => text.includes(query));
  const turns = hits(testSet.lowered.turns);
  const responses = visible().map((number) => [testSet.systems[number].responses, hits(testSet.lowered.systems[number])]);
  return (number) =>
    testSet.contexts[number].some((turn) => turns[turn]) ||
    testSet.references[number].some((turn) => turns[turn]) ||
    responses.some(([indices, hit]) => hit[indices[number]]);
}

function withValue(name, test) {
  const index = metricIndex(name);
  const columns = visible().map((number) => testSet.systems[number].values[index]);
  return (number) => columns.some((values) => values && values[number] !== null && test(values[number]));
}

// The quarter of the contexts with the greatest mean distance (Jaccard) between the responses' words.
function disagreeing() {
  const systems = visible().map((number) => testSet.systems[number]).filter((system) => system.ranked);
  const words = systems.map((system) => system.texts.map(wordsOf));
  const distances = testSet.ids.map((_, number) => {
    return meanDistance(systems.map((system, index) => words[index][system.responses[number]]));
  });
  const least = [...distances].sort((a, b) => b - a)[Math.max(Math.ceil(distances.length / 4) - 1, 0)];
  return (number) => distances[number] > 0 && distances[number] >= least;
}

const wordsOf = (text) => new Set(text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []);

function meanDistance(wordSets) {
  let [sum, pairs] = [0, 0];
  for (let i = 0; i < wordSets.length; i++) {
    for (let j = 0; j < i; j++) {
      sum += distance(wordSets[i], wordSets[j]);
      pairs++;
    }
  }
  return pairs ? sum / pairs : 0;
}

function distance(a, b) {
  let both = 0;
  for (const word of a) if (b.has(word)) both++;
  const either = a.size + b.size - both;
  return either ? 1 - both / either : 0;
}

function turn(step) {
  page += step;
  show();
  find("#pager").scrollIntoView();
}

function show() {
  const pages = Math.max(1, Math.ceil(matches.length / PAGE));
  const count = (number) => number.toLocaleString("en");
  find("#previous").disabled = page === 0;
  find("#next").disabled = page >= pages - 1;
  find("#status").textContent =
    `${count(matches.length)} of ${count(testSet.ids.length)} contexts, page ${count(page + 1)} of ${count(pages)}`;
  const query = find("#search").value.trim().toLowerCase();
  const systems = visible();
  const cards = matches.slice(page * PAGE, (page + 1) * PAGE).map((number) => card(number, systems, query));
  find("#list").replaceChildren(...cards);
}

function card(number, systems, query) {
  const turns = testSet.contexts[number].map((turn) => make("li", "text", ...marked(testSet.turns[turn], query)));
  const references = testSet.references[number].map((turn) =>
    make("p", "reference", make("span", "label", "Reference"), make("span", "text", ...marked(testSet.turns[turn], query))));
  const head = make("tr", "", column("System"), column("Response"), ...testSet.measures.map((metric) => column(metric.title)));
  const rows = sameResponses(systems, number).map((group) => responseRow(group, number, query));
  const table = make("table", "", make("thead", "", head), make("tbody", "", ...rows));
  return make("section", "conversation", make("h3", "", testSet.ids[number]),
    make("ol", "turns", ...turns), ...references, scrolling(table, `Responses to ${testSet.ids[number]}`));
}

// A wide table scrolls within its box, also by keys.
function scrolling(table, name) {
  const box = make("div", "wide", table);
  box.tabIndex = 0;
  box.setAttribute("role", "region");
  box.setAttribute("aria-label", name);
  return box;
}

function column(title) {
  const head = make("th", "", title);
  head.scope = "col";
  return head;
}

// Systems that respond the same stand in one row.
function sameResponses(systems, number) {
  const groups = new Map();
  for (const system of systems.map((index) => testSet.systems[index])) {
    const values = system.values.map((column) => column?.[number] ?? null);
    const key = JSON.stringify([system.texts[system.responses[number]], values]);
    groups.set(key, [...(groups.get(key) ?? []), system]);
  }
  return [...groups.values()];
}

const NAMED = 3;

function responseRow(group, number, query) {
  const [system] = group;
  const head = make("th", "", ...names(group.map((one) => one.label)));
  head.scope = "row";
  const response = make("td", "response text", ...marked(system.texts[system.responses[number]] || "(empty)", query));
  const values = testSet.measures.map((metric, index) => {
    const cell = make("td", "values", shown(system.values[index]?.[number], metric.digits));
    cell.dataset.metric = metric.title;
    return cell;
  });
  return make("tr", "", head, response, ...values);
}

function names(labels) {
  const spans = labels.map((label) => make("span", "label", label));
  if (labels.length <= NAMED) return spans;
  return [make("details", "", make("summary", "", `${labels.length} systems`), ...spans)];
}

function shown(value, digits) {
  return value == null ? "–" : (value / 10 ** digits).toFixed(digits).replace("-", "−");
}

// The text with the searched parts marked.
function marked(text, query) {
  if (!query) return [text];
  const lowered = text.toLowerCase();
  if (lowered.length !== text.length) return [text];
  const pieces = [];
  let start = 0;
  for (let at; (at = lowered.indexOf(query, start)) >= 0; start = at + query.length) {
    pieces.push(text.slice(start, at), make("mark", "", text.slice(at, at + query.length)));
  }
  return [...pieces, text.slice(start)];
}

startTheme();
startTables();
startSystems();
startConversations();
