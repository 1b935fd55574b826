const at = (id) => document.getElementById(id);
const number = new Intl.NumberFormat();
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

async function refresh() {
  try {
    const answer = await fetch("admin/stats");
    if (!answer.ok) throw new Error(`the proxy answers ${answer.status}`);
    const stats = await answer.json();
    at("state").textContent = stats.draining ? "draining" : "running";
    at("rate").textContent = stats.hit_rate === null ? "–" : `${(100 * stats.hit_rate).toFixed(1)} %`;
    at("entries").textContent = number.format(stats.store_entries);
    at("bytes").textContent = size(stats.store_bytes);
    at("running").textContent = number.format(stats.requests_running);
    sources(stats.requests);
    rows("reasons", stats.reasons);
    rows("not-kept", stats.not_kept);
  } catch (error) {
    at("state").textContent = `not reachable: ${error.message}`;
  }
}

refresh();
setInterval(refresh, 2000);
