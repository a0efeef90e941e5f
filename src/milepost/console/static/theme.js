// Light or dark as the visitor chose, before anything is drawn; without a choice the system's.
"use strict";
const chosen = localStorage.getItem("milepost-theme");
if (chosen) document.documentElement.dataset.theme = chosen;
document.addEventListener("DOMContentLoaded", () => {
  const button = document.getElementById("theme");
  const system = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (document.documentElement.dataset.theme || (system.matches ? "dark" : "light")) === "dark";
  const name = () => { button.textContent = isDark() ? "Light" : "Dark"; };
  button.hidden = false;
  name();
  system.addEventListener("change", name);
  button.addEventListener("click", () => {
    const next = isDark() ? "light" : "dark";
    localStorage.setItem("milepost-theme", next);
    document.documentElement.dataset.theme = next;
    name();
  });
});
