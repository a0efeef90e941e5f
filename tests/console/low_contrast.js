// Every visible text whose contrast with what is behind it is less than WCAG AA asks for (4.5; 3 for large text).
() => {
  const channels = (text) => {
    const numbers = text.match(/[\d.]+/g).map(Number);
    return numbers.length < 4 ? [...numbers, 1] : numbers;
  };
  const luminance = (colour) => {
    const [r, g, b] = colour.slice(0, 3).map((x) => x / 255).map((x) => (x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ratio = (one, other) => {
    const [dark, light] = [luminance(one), luminance(other)].sort((a, b) => a - b);
    return (light + 0.05) / (dark + 0.05);
  };
  const behind = (one) => {
    for (; one; one = one.parentElement) {
      const colour = channels(getComputedStyle(one).backgroundColor);
      if (colour[3] === 1) return colour;
    }
    return [255, 255, 255, 1];
  };
  const least = (style) => {
    const size = parseFloat(style.fontSize);
    return size >= 24 || (size >= 18.66 && style.fontWeight >= 700) ? 3 : 4.5;
  };
  const found = new Set();
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const one = walker.currentNode.parentElement;
    const said = walker.currentNode.data.trim();
    if (!said || one.closest("title, script, .hidden, .skip") || !one.checkVisibility()) continue;
    const style = getComputedStyle(one);
    const is = ratio(channels(one instanceof SVGElement ? style.fill : style.color), behind(one));
    const name = one.className.baseVal ?? one.className;
    if (is < least(style)) found.add(`${is.toFixed(2)} ${one.tagName}.${name}: ${said.slice(0, 40)}`);
  }
  return [...found];
}
