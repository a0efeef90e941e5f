// Pages that are open are told that something changed and fetch their [data-live] parts again, never over what one typed.
"use strict";
const status = document.getElementById("live");
const EVERY_MS = 2000;
let due = false;
let busy = false;

function say(text, isLive) {
  status.textContent = text;
  status.classList.toggle("live-on", isLive);
}

// ── live parts ──

function isTouched(field) {
  if (field.type === "checkbox") return field.checked !== field.defaultChecked;
  return field.type !== "hidden" && "defaultValue" in field && field.value !== field.defaultValue;
}

function isBusy(part) {
  const at = document.activeElement;
  const isTyping = part.contains(at) && at.matches("input:not([type=checkbox]), textarea, select");
  return isTyping || [...part.querySelectorAll("input, textarea")].some(isTouched);
}

// What a visitor had opened, focused or scrolled to stays so when a part is drawn anew.
function remember(part) {
  const opened = [...part.querySelectorAll("details[id][open]")].map((one) => one.id);
  const at = part.contains(document.activeElement) ? document.activeElement : null;
  const focused = at && (at.id ? "#" + CSS.escape(at.id) : at.getAttribute("href") && `a[href="${CSS.escape(at.getAttribute("href"))}"]`);
  return (now) => {
    for (const id of opened) { const one = document.getElementById(id); if (one) one.open = true; }
    if (focused) now.querySelector(focused)?.focus({ preventScroll: true });
  };
}

function renew(part, fresh) {
  const now = fresh.getElementById(part.id);
  if (!now) return;
  const restore = remember(part);
  part.replaceWith(now);
  htmx.process(now);
  restore(now);
}

async function refresh() {
  due = false;
  busy = true;
  setTimeout(() => { busy = false; if (due) refresh(); }, EVERY_MS);
  const answer = await fetch(location.href).catch(() => null);
  if (!answer?.ok) return say(answer?.status === 401 ? "Signed out; reload to sign in" : "Not live", false);
  const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
  const parts = [...document.querySelectorAll("[data-live][id]")];
  if (parts.length < 2 || parts.some(isBusy)) say("Something changed; reload to see it", true);
  for (const part of parts) if (!isBusy(part)) renew(part, fresh);
  for (const part of document.querySelectorAll("[data-again]")) htmx.trigger(part, "again");
}

const events = new EventSource("/events");
events.addEventListener("open", () => say("Live", true));
events.addEventListener("error", () => say("Not live", false));
events.addEventListener("changed", () => { due = true; if (!busy && !document.hidden) refresh(); });
document.addEventListener("visibilitychange", () => { if (due && !busy && !document.hidden) refresh(); });
window.addEventListener("pagehide", () => events.close());

// ── clicks and keys ──

document.addEventListener("click", async (event) => {
  const pick = event.target.closest("[data-pick]");
  if (pick) for (const box of pick.form.querySelectorAll("input[type=checkbox]")) box.checked = pick.dataset.pick === "all";
  const copy = event.target.closest("[data-copy]");
  if (copy) {
    await navigator.clipboard?.writeText(copy.dataset.copy).catch(() => {});
    say("Copied", true);
  }
});

// j and k go from item to item of a list, as in mail programs; everything else is the browser's.
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches("input, textarea, select")) return;
  const step = { j: 1, k: -1 }[event.key];
  if (!step) return;
  const items = [...document.querySelectorAll("[data-item]")];
  const at = items.findIndex((item) => item.contains(document.activeElement));
  const next = items[at < 0 ? (step > 0 ? 0 : items.length - 1) : at + step];
  next?.querySelector("h2 a, h2[tabindex], th a")?.focus();
});
