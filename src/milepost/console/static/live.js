// Pages that are open are told that something changed and fetch their [data-live] part again, never while one types.
"use strict";
const status = document.getElementById("live");
const EVERY_MS = 2000;
let due = false;
let busy = false;

function isBusy(part) {
  const at = document.activeElement;
  return part.contains(at) && at.matches("input, textarea, select");
}

function refresh() {
  due = false;
  busy = true;
  setTimeout(() => { busy = false; if (due) refresh(); }, EVERY_MS);
  for (const part of document.querySelectorAll("[data-live][id]")) {
    if (isBusy(part)) { status.textContent = "Something changed; reload to see it."; continue; }
    htmx.ajax("GET", location.href, { target: part, select: "#" + part.id, swap: "outerHTML" });
  }
  if (!document.querySelector("[data-live]")) status.textContent = "Something changed; reload to see it.";
}

const events = new EventSource("/events");
events.addEventListener("open", () => { status.textContent = "Live"; });
events.addEventListener("error", () => { status.textContent = "Not live"; });
events.addEventListener("changed", () => { due = true; if (!busy && !document.hidden) refresh(); });
document.addEventListener("visibilitychange", () => { if (due && !busy && !document.hidden) refresh(); });
window.addEventListener("pagehide", () => events.close());

document.addEventListener("click", (event) => {
  const pick = event.target.closest("[data-pick]");
  if (!pick) return;
  for (const box of pick.form.querySelectorAll("input[type=checkbox]")) box.checked = pick.dataset.pick === "all";
});
