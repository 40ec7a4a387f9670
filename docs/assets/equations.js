"use strict";
// Every formula of the page, set by the KaTeX that is beside it; a formula that cannot be set stays readable and is red.
for (const formula of document.querySelectorAll(".arithmatex")) {
  const text = formula.textContent.trim();
  const display = text.startsWith("\\[");
  katex.render(text.slice(2, -2), formula, { displayMode: display, throwOnError: false });
}
