// Names for what the theme leaves without one, so that screen readers and keyboards reach everything.
document.addEventListener("DOMContentLoaded", () => {
  // Its name holds its text, "Search Ctrl+K", which a narrow screen hides.
  for (const button of document.querySelectorAll("button.search-button-field")) {
    button.setAttribute("aria-label", button.textContent.replace(/\s+/g, " ").trim());
  }
  // The arrows that open a part of the list of pages.
  for (const arrow of document.querySelectorAll("nav summary:not([aria-label])")) {
    const link = arrow.closest("li")?.querySelector("a");
    arrow.setAttribute("aria-label", `Pages below ${link ? link.textContent.trim() : "this one"}`);
  }
  // The links over the pictures of the gallery, whose text is hidden.
  for (const link of document.querySelectorAll(".sphx-glr-thumbcontainer a.reference")) {
    link.setAttribute("aria-label", link.textContent.trim());
  }
  // What scrolls sideways is scrolled by keyboard too.
  for (const table of document.querySelectorAll(".bd-article table.table")) {
    if (table.scrollWidth > table.clientWidth) {
      table.setAttribute("tabindex", "0");
    }
  }
});
