// What somebody who does not see the page, or has no mouse, would miss.
() => {
  const found = [];
  const all = (what) => [...document.querySelectorAll(what)].filter((one) => one.checkVisibility());
  const name = (one) => one.textContent.trim() || one.getAttribute("aria-label");
  const told = (what, one) => found.push(`${what}: ${one.outerHTML.slice(0, 80)}`);

  if (document.querySelectorAll("main").length !== 1) found.push("not one main");
  if (all("h1").length !== 1) found.push("not one h1");
  if (!document.documentElement.lang || !document.title) found.push("no language or title");
  let level = 1;
  for (const one of all("h1, h2, h3, h4")) {
    if (Number(one.tagName[1]) > level + 1) told("a level of headings is left out", one);
    level = Number(one.tagName[1]);
  }
  for (const one of all("input:not([type=hidden]), select, textarea")) if (!one.labels?.length) told("no label", one);
  for (const one of all("button, a[href], summary")) if (!name(one)) told("no name", one);
  for (const one of all("img:not([alt])")) told("no alt", one);
  for (const one of all("svg:not([aria-hidden])")) if (!one.querySelector("title")) told("a picture without words", one);
  for (const one of all("th:not([scope])")) told("a heading of nothing", one);
  for (const one of all("*")) {
    const scrolls = one.scrollWidth > one.clientWidth + 1 && /auto|scroll/.test(getComputedStyle(one).overflowX);
    if (scrolls && one.tabIndex < 0 && !one.querySelector("a[href], button, input")) told("scrolls, not by keyboard", one);
  }
  const ids = [...document.querySelectorAll("[id]")].map((one) => one.id);
  for (const id of new Set(ids)) if (ids.indexOf(id) !== ids.lastIndexOf(id)) found.push(`twice: #${id}`);
  return found;
}
