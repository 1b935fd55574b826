const at = (id) => document.getElementById(id);
const number = new Intl.NumberFormat();
const share = (part) => part === null ? "–" : `${(100 * part).toFixed(1)} %`;
const FAMILIES = 10;
const SOURCES = ["HIT", "STALE", "MISS", "BYPASS"];

function rows(id, counts) {
  const sorted = Object.entries(counts).sort((a, b) => b[1] - a[1]);
  at(id).replaceChildren(...sorted.map(([name, count]) => {
    const row = document.createElement("tr");
    for (const text of [name, number.format(count)]) {
      const cell = document.createElement("td");
      cell.textContent = text;
      row.append(cell);
    }
    return row;
  }));
}

function sources(counts) {
  const total = SOURCES.reduce((sum, name) => sum + counts[name], 0) || 1;
  at("bar").replaceChildren(...SOURCES.map((name) => {
    const part = document.createElement("span");
    part.className = name;
    part.style.width = `${100 * counts[name] / total}%`;
    return part;
  }));
  at("sources").replaceChildren(...SOURCES.map((name) => {
    const item = document.createElement("li");
    const mark = document.createElement("i");
    mark.className = name;
    item.append(mark, `${name} ${number.format(counts[name])}`);
    return item;
  }));
}

function size(bytes) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  while (bytes >= 1024 && unit < units.length - 1) { bytes /= 1024; unit += 1; }
  return `${bytes.toFixed(unit ? 1 : 0)} ${units[unit]}`;
}

function seconds(value) {
  if (value === null) return "–";
  return value < 1 ? `${(1000 * value).toFixed(0)} ms` : `${value.toFixed(2)} s`;
}

function place(divergence) {
  if (divergence === null) return "nowhere";
  const values = divergence.span ? `: ${divergence.span.join(" → ")}` : "";
  return `${divergence.kind} at ${divergence.pointer}, ${number.format(divergence.offset)}${values}`;
}

function mended(divergence) {
  if (divergence === null) return "–";
  if (divergence.rule === null) return "none; perhaps a pattern of your own";
  return `${divergence.rule}, about ${number.format(divergence.saves.tokens)} tokens`;
}

function family(told) {
  const row = document.createElement("tr");
  const head = document.createElement("th");
  head.scope = "row";
  head.textContent = told.id;
  row.append(head);
  const cells = [
    [told.model], [number.format(told.requests), "count"], [share(told.upstream.hit_share), "count"],
    [seconds(told.ttft.p50), "count"], [place(told.divergence)], [mended(told.divergence)],
  ];
  for (const [text, kind] of cells) {
    const cell = document.createElement("td");
    cell.textContent = text;
    if (kind) cell.className = kind;
    row.append(cell);
  }
  return row;
}

function prefixes(told) {
  const { prompt_tokens: prompt, cached_tokens: cached, hit_share: part } = told.total;
  at("prefix-share").textContent = share(part);
  at("prefix-tokens").textContent = part === null ? "The backend has not said yet what it had in its prefix cache."
    : `${number.format(cached)} of ${number.format(prompt)} prompt tokens came from the backend's own cache.`;
  at("families").replaceChildren(...told.families.map(family));
}

function semantic(stats) {
  const told = stats.semantic;
  at("semantic").hidden = told === undefined;
  if (told === undefined) return;
  const looks = Object.values(stats.semantic_looks).reduce((sum, count) => sum + count, 0);
  at("semantic-share").textContent = looks ? share((stats.semantic_looks.found || 0) / looks) : "–";
  const raised = told.tightened ? ` Thresholds are raised by ${told.tightened.toFixed(2)}.` : "";
  at("semantic-wrong").textContent = told.samples === 0 ? "No answer has been compared with the backend's own yet."
    : `Wrong, as ${number.format(told.samples)} samples tell: ${share(told.false_hit_rate)}, with ${100 * told.confidence} % `
      + `certainty between ${share(told.low)} and ${share(told.high)}; tolerated ${share(told.target)}.${raised}`;
  rows("looks", stats.semantic_looks);
  rows("unlike", stats.unlike);
}

async function ask(path) {
  const answer = await fetch(path);
  if (!answer.ok) throw new Error(`the proxy answers ${answer.status}`);
  return answer.json();
}

async function refresh() {
  try {
    const [stats, known] = await Promise.all([ask("admin/stats"), ask(`admin/prefixes?limit=${FAMILIES}`)]);
    at("state").textContent = stats.draining ? "draining" : "running";
    at("rate").textContent = share(stats.hit_rate);
    at("entries").textContent = number.format(stats.store_entries);
    at("bytes").textContent = size(stats.store_bytes);
    at("running").textContent = number.format(stats.requests_running);
    sources(stats.requests);
    rows("reasons", stats.reasons);
    rows("not-kept", stats.not_kept);
    semantic(stats);
    prefixes(known);
  } catch (error) {
    at("state").textContent = `not reachable: ${error.message}`;
  }
}

refresh();
setInterval(refresh, 2000);
