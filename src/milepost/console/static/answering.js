// A form whose text was changed offers only the choice that takes the change; the others wait until it is put back.
"use strict";
const isChanged = (field) => field.value !== field.defaultValue;

function follow(form) {
  const changed = [...form.querySelectorAll("[data-decides]")].find(isChanged);
  form.classList.toggle("changed", Boolean(changed));
  for (const one of form.querySelectorAll("[data-changed]")) one.hidden = !changed;
  for (const button of form.querySelectorAll("button[name=choice]")) button.disabled = Boolean(changed) && button.value !== changed.dataset.decides;
}

function followAll() {
  for (const field of document.querySelectorAll("[data-decides]")) follow(field.form);
}

document.addEventListener("input", (event) => { if (event.target.matches("[data-decides]")) follow(event.target.form); });
document.addEventListener("click", (event) => {
  const undo = event.target.closest("[data-undo]");
  if (!undo) return;
  for (const field of undo.form.querySelectorAll("[data-decides]")) field.value = field.defaultValue;
  follow(undo.form);
});
window.addEventListener("pageshow", followAll); // a browser that comes back to a page fills in what was typed
