// Light or dark as the visitor chose, before anything is drawn; without a choice the system's.
"use strict";
const chosen = localStorage.getItem("milepost-theme");
if (chosen) document.documentElement.dataset.theme = chosen;
document.addEventListener("DOMContentLoaded", () => {
  const button = document.getElementById("theme");
  const isDark = () => getComputedStyle(document.documentElement).colorScheme.trim() === "dark";
  const name = () => { button.textContent = isDark() ? "Light" : "Dark"; };
  button.hidden = false;
  name();
  button.addEventListener("click", () => {
    const next = isDark() ? "light" : "dark";
    localStorage.setItem("milepost-theme", next);
    document.documentElement.dataset.theme = next;
    name();
  });
});
